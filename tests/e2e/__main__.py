"""`python -m tests.e2e`: the whole life of a stack with the demo's situations; exit status 0 means that every step has shown what it must."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from local.demo.display import Display
from local.demo.play import Run
from local.demo.report import report
from local.processes.child import ProcessError
from local.processes.children import Interrupted
from local.stack.running import running_stack
from tests.e2e.life import Life, WrongError, demand


def live(display: Display, *, short: bool, logs: Path | None = None) -> list[tuple[str, str]]:
    """Play a life; the short one leaves the demo's situations out.

    Raises:
        ProcessError: a part of the stack does not start, deploy or update.
        WrongError: a step has not shown what it must.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tahan-e2e-") as scratch,
        running_stack(display.say, logs) as stack,
    ):
        life = Life(stack, display.say)
        life.note("deployed", f"bootstrap and stack, {len(stack.outputs)} outputs")
        if not short:
            began = time.monotonic()
            with display:
                play = Run(stack, display)
                play.play()
            end = report(play.results(), play.observation, time.monotonic() - began)
            demand(end.is_ok, f"the demo's situations: {end.as_json()}")
            totals = end.totals
            life.note(
                "the demo's situations", f"{totals.sent} sent, {totals.lost} lost, {totals.charged_twice} charged twice"
            )
        life.smoke(Path(scratch))
        life.update_and_roll_back(Path(scratch))
        life.destroy()
        return life.done


def main() -> int:
    """Run it; 0 means that all holds."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e", description="The life of a stack on the stand-in.")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line of stdout")
    parser.add_argument("--short", action="store_true", help="without the demo's situations")
    parser.add_argument("--logs", type=Path, help="folder in which the logs of all parts stay")
    options = parser.parse_args()
    display = Display(to_stderr=options.json)
    started = time.monotonic()
    try:
        done = live(display, short=options.short, logs=options.logs)
    except (ProcessError, WrongError) as error:
        display.say(str(error))
        return 1
    except Interrupted as interrupted:
        display.say("interrupted; everything is stopped")
        return interrupted.status
    display.say(f"The life of a stack holds, {time.monotonic() - started:.0f} s.")
    if options.json:
        sys.stdout.write(f"{json.dumps({'steps': dict(done), 'seconds': round(time.monotonic() - started)})}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
