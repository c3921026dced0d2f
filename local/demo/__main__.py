"""The demo: `python -m local.demo` runs every situation on real messages; exit status 0 means that all ended well.

With `--json` the last line of stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from local.demo.display import Display
from local.demo.play import Run
from local.demo.report import report
from local.kept import keep
from local.processes.child import ProcessError
from local.processes.children import Interrupted
from local.stack.running import running_stack

if TYPE_CHECKING:
    from local.demo.report import Report

INTERRUPTED = 130


def run(display: Display, logs: Path | None = None, picture: Path | None = None, *, stays: bool = False) -> Report:
    """Start the stack, run all situations, and give the report; everything is stopped again, if it is not to stay.

    Raises:
        ProcessError: a part of the stack does not start or ended early.
    """
    started = time.monotonic()
    with running_stack(display.say, logs) as stack:
        with display:
            play = Run(stack, display)
            play.play()
        end = report(play.results(), play.observation, time.monotonic() - started)
        display.finish(end, play.observation)
        if picture is not None:
            picture.write_text(display.picture(end, play.observation), encoding="utf-8")
        if stays:
            with contextlib.suppress(Interrupted):  # which is how it ends well: the demo is over
                keep(stack, display.write)
        return end


def main() -> int:
    """Run the demo; 0 means that every expectation holds."""
    parser = argparse.ArgumentParser(
        prog="python -m local.demo", description="Every situation on real messages, locally."
    )
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line of stdout")
    parser.add_argument("--logs", type=Path, help="folder in which the logs of all parts stay")
    parser.add_argument("--picture", type=Path, help="file for the summary as an SVG picture")
    parser.add_argument("--keep", action="store_true", help="let the stack stay up after the demo, until Ctrl-C")
    options = parser.parse_args()
    display = Display(to_stderr=options.json)
    try:
        end = run(display, options.logs, options.picture, stays=options.keep)
    except ProcessError as error:
        display.say(str(error))
        return 1
    except Interrupted as interrupted:
        display.say("interrupted; everything is stopped")
        return interrupted.status
    except KeyboardInterrupt:  # before the children exist
        return INTERRUPTED
    if options.json:
        sys.stdout.write(f"{end.as_json()}\n")
    return 0 if end.is_ok else 1


if __name__ == "__main__":
    sys.exit(main())
