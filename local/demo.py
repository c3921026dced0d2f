"""The demo: `python -m local.demo` runs every situation on real messages; exit status 0 means that all ended well.

With `--json` the last line of stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from local.child import ProcessError
from local.display import Display
from local.observation import Observation, Observer
from local.processes import Interrupted
from local.situations import AMOUNT, CURRENCY, SITUATIONS, Trouble
from local.stack import Stack, running_stack
from local.verdict import Report, Result, judge, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.situations import Situation

JOB_TYPE = "capture-payment"
LOOK_EVERY = 0.5
OUTAGE = timedelta(seconds=10)
PATIENCE = timedelta(minutes=2)  # for one phase; a killed worker's messages come back after the visibility timeout
CALM = timedelta(seconds=10)  # nothing on the way for so long: what is missing is lost (the relay may start cold)
INTERRUPTED = 130


class Run:
    """One run of all situations on a stack."""

    def __init__(self, stack: Stack, display: Display) -> None:
        self._stack = stack
        self._display = display
        self._observer = Observer(stack, JOB_TYPE)
        self._sent: dict[str, tuple[str, ...]] = {}
        self._troubled: set[str] = set()
        self._phase = ""
        self.observation = Observation()

    def play(self) -> None:
        """Send everything and wait until all is at rest.

        The killed worker comes first: its messages return only after the visibility timeout, while the others run.
        """
        by_trouble = {trouble: [s for s in SITUATIONS if s.trouble is trouble] for trouble in Trouble}
        self._seed()
        self._enter("a worker is killed after its charge", by_trouble[Trouble.WORKER_KILLED])
        self._wait(lambda: self.observation.killed > 0)
        self._enter("sending", by_trouble[Trouble.NONE])
        self._wait(lambda: self._all_as_expected(by_trouble[Trouble.NONE]))
        self._stop_redis_for(OUTAGE, by_trouble[Trouble.REDIS_STOPPED])
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
        return [
            judge(
                situation,
                self._sent.get(situation.name, ()),
                self.observation,
                is_troubled=self._is_troubled(situation),
            )
            for situation in SITUATIONS
        ]

    def _seed(self) -> None:
        for order in (situation.order for situation in SITUATIONS):
            if order is not None:
                self._stack.clients.dynamodb.put_item(
                    TableName=self._stack.outputs["TableOrders"],
                    Item={
                        "order_id": {"S": order.order_id},
                        "user_id": {"S": "user-1"},
                        "amount": {"S": AMOUNT},
                        "currency": {"S": CURRENCY},
                        "payment_intent_id": {"S": order.intent},
                        "status": {"S": "pending"},
                        "version": {"N": "1"},
                    },
                )

    def _enter(self, phase: str, situations: list[Situation]) -> None:
        self._phase = phase
        for situation in situations:
            for body in situation.bodies:
                self._stack.clients.sqs.send_message(QueueUrl=self._stack.outputs["QueuePayments"], MessageBody=body)
            self._sent[situation.name] = situation.bodies

    def _stop_redis_for(self, outage: timedelta, situations: list[Situation]) -> None:
        self._stack.valkey.stop()
        self._enter(f"Redis is stopped for {outage.total_seconds():.0f} s", situations)
        self._wait(lambda: False, outage)
        if not self._stack.valkey.is_running:
            self._troubled |= {situation.name for situation in situations}
        self._stack.valkey.start()

    def _is_troubled(self, situation: Situation) -> bool:
        return situation.trouble is not Trouble.REDIS_STOPPED or situation.name in self._troubled

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


def run(display: Display, logs: Path | None = None, picture: Path | None = None) -> Report:
    """Start the stack, run all situations, and give the report; everything is stopped again.

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
        return end


def main() -> int:
    """Run the demo; 0 means that every expectation holds."""
    parser = argparse.ArgumentParser(
        prog="python -m local.demo", description="Every situation on real messages, locally."
    )
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line of stdout")
    parser.add_argument("--logs", type=Path, help="folder in which the logs of all parts stay")
    parser.add_argument("--picture", type=Path, help="file for the summary as an SVG picture")
    options = parser.parse_args()
    display = Display(to_stderr=options.json)
    try:
        end = run(display, options.logs, options.picture)
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
