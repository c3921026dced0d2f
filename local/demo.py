"""The demo: `python -m local.demo` runs every situation on real messages; exit status 0 means that all ended well.

With `--json` the last line of stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from local.account import Sent
from local.child import ProcessError
from local.display import Display
from local.kept import keep
from local.observation import Observation
from local.observer import Observer
from local.processes import Interrupted
from local.report import Report, report
from local.seed import seed
from local.situations import SITUATIONS, Trouble
from local.stack import Stack, running_stack
from local.verdict import Result, judge

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.situations import Situation

LOOK_EVERY = 0.5
OUTAGE = timedelta(seconds=10)
PATIENCE = timedelta(minutes=2)  # for one phase; a killed worker's messages come back after the visibility timeout
STANDSTILL = timedelta(seconds=30)  # nothing has changed for so long: waiting on would show nothing new
CALM = timedelta(seconds=10)  # nothing on the way for so long: what is missing is lost (the relay may start cold)
INTERRUPTED = 130


class Run:
    """One run of all situations on a stack."""

    def __init__(self, stack: Stack, display: Display) -> None:
        self._stack = stack
        self._display = display
        self._observer = Observer(stack)
        self._sent: dict[str, tuple[Sent, ...]] = {}
        self._phase = ""
        self.observation = Observation()

    def play(self) -> None:
        """Send everything and wait until all is at rest.

        The killed worker comes first: its messages return only after the visibility timeout, while the others run.
        """
        killing = [situation for situation in SITUATIONS if situation.trouble is Trouble.WORKER_KILLED]
        outage = [situation for situation in SITUATIONS if situation.trouble is Trouble.REDIS_STOPPED]
        others = [situation for situation in SITUATIONS if situation not in (*killing, *outage)]
        seed(self._stack, [situation.order for situation in SITUATIONS if situation.order is not None])
        self.observation = self._observer.look()  # what is cached before anything is sent
        self._enter("a worker is killed after its charge", killing)
        self._wait(lambda: self.observation.killed > 0)
        self._enter("sending", others)
        self._wait(self._as_expected_or_stuck(others))
        self._stop_redis_for(OUTAGE, outage)
        self._phase = "waiting until all is at rest"
        calm_since = time.monotonic()

        def is_over() -> bool:
            nonlocal calm_since
            if not self.observation.is_at_rest:
                calm_since = time.monotonic()
            is_calm = time.monotonic() - calm_since >= CALM.total_seconds()
            return self.observation.is_at_rest and (self._all_as_expected(SITUATIONS) or is_calm)

        self._wait(is_over)

    def results(self) -> list[Result]:
        """How each situation stands."""
        return [judge(situation, self._sent.get(situation.name, ()), self.observation) for situation in SITUATIONS]

    def _enter(self, phase: str, situations: list[Situation]) -> None:
        self._phase = phase
        for situation in situations:
            bodies = situation.bodies
            answer = self._stack.clients.sqs.send_message_batch(  # together, so that those that race arrive together
                QueueUrl=self._stack.outputs["QueuePayments"],
                Entries=[{"Id": str(place), "MessageBody": body} for place, body in enumerate(bodies)],
            )
            taken = answer.get("Successful", [])
            self._sent[situation.name] = tuple(Sent(entry["MessageId"], bodies[int(entry["Id"])]) for entry in taken)

    def _stop_redis_for(self, outage: timedelta, situations: list[Situation]) -> None:
        self._stack.valkey.stop()
        self._enter(f"Redis is stopped for {outage.total_seconds():.0f} s", situations)
        self._wait(lambda: False, outage)
        self._stack.valkey.start()

    def _as_expected_or_stuck(self, situations: list[Situation]) -> Callable[[], bool]:
        names = {situation.name for situation in situations}
        before: list[Result] = []
        changed = time.monotonic()

        def is_over() -> bool:
            nonlocal before, changed
            now = [result for result in self.results() if result.name in names]
            if now != before:
                before, changed = now, time.monotonic()
            return self._all_as_expected(situations) or time.monotonic() - changed > STANDSTILL.total_seconds()

        return is_over

    def _all_as_expected(self, situations: tuple[Situation, ...] | list[Situation]) -> bool:
        names = {situation.name for situation in situations}
        return all(result.is_as_expected for result in self.results() if result.name in names)

    def _wait(self, is_over: Callable[[], bool], patience: timedelta = PATIENCE) -> None:
        deadline = time.monotonic() + patience.total_seconds()
        while time.monotonic() < deadline:
            self._stack.check()
            self.observation = self._observer.look()
            self._display.show(self.results(), self.observation, self._phase)
            if is_over():
                return
            time.sleep(LOOK_EVERY)


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
