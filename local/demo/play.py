"""Plays all situations on a running stack: what is sent when, what is made to fail meanwhile, and how long is waited."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

from local.demo.account import Sent
from local.demo.client import Client, first_operation
from local.demo.observation import Observation
from local.demo.observer import Observer
from local.demo.outbox_switch import OutboxSwitch
from local.demo.over_http import ASKED
from local.demo.over_http_verdict import judge_asked
from local.demo.seed import change_user, seed, seed_invoices, seed_users
from local.demo.situations import SITUATIONS, Trouble
from local.demo.verdict import Result, judge
from shared.naming import camel

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from local.demo.client import Answer
    from local.demo.display import Display
    from local.demo.over_http import Asked
    from local.demo.situations import Situation
    from local.stack.running import Stack

LOOK_EVERY = 0.5
OUTAGE = timedelta(seconds=10)
MINUTE = timedelta(seconds=6)  # of the local stage, whose pace is a tenth: how often the sweeper comes by
PATIENCE = timedelta(minutes=2)  # for one phase; a killed worker's messages come back after the visibility timeout
STANDSTILL = timedelta(seconds=30)  # nothing has changed for so long: waiting on would show nothing new
CALM = timedelta(seconds=10)  # nothing on the way for so long: what is missing is lost (the relay may start cold)


class Run:
    """One run of all situations on a stack."""

    def __init__(self, stack: Stack, display: Display) -> None:
        self._stack = stack
        self._display = display
        self._client = Client(stack.api, stack.issuer)
        self._observer = Observer(stack, self._client)
        self._outbox = OutboxSwitch.of(stack.clients)
        self._sent: dict[str, tuple[Sent, ...]] = {}
        self._answers: dict[str, tuple[Answer, ...]] = {}
        self._phase = ""
        self.observation = Observation()

    def play(self) -> None:
        """Send everything and wait until all is at rest.

        The killed worker comes first: its messages return only after the visibility timeout, while the others run. What the
        sweeper is to send waits for longer than the relay's grace, while the others run, too.
        """
        killing = [situation for situation in SITUATIONS if situation.trouble is Trouble.WORKER_KILLED]
        outage = [situation for situation in SITUATIONS if situation.trouble is Trouble.REDIS_STOPPED]
        others = [situation for situation in SITUATIONS if situation not in (*killing, *outage)]
        unrelayed = [asked for asked in ASKED if asked.without_relay]
        seed(self._stack, [each.order for each in (*SITUATIONS, *ASKED) if each.order is not None])
        seed_users(self._stack, SITUATIONS)
        seed_invoices(self._stack, [each.invoice for each in SITUATIONS if each.invoice is not None])
        self.observation = self._observer.look()  # what is cached, and read over HTTP, before anything is sent
        self._switch_relay(on=False)
        self._ask("the relay is off", unrelayed)
        self._enter("a worker is killed after its charge", killing)
        self._wait(lambda: self.observation.killed > 0)
        self._enter("sending", others)
        self._sweep_until(unrelayed)
        self._switch_relay(on=True)
        asked = [asked for asked in ASKED if asked not in unrelayed]
        self._ask("asking over HTTP", asked)
        self._wait(self._as_expected_or_stuck([*others, *asked]))
        self._stop_redis_for(OUTAGE, outage)
        self._phase = "waiting until all is at rest"
        self._wait(self._at_rest_or_calm())
        self.observation = self._observer.look(is_last=True)

    def results(self) -> list[Result]:
        """How each situation stands."""
        sent = [judge(situation, self._sent.get(situation.name, ()), self.observation) for situation in SITUATIONS]
        asked = [judge_asked(asked, self._answers.get(asked.name, ()), self.observation) for asked in ASKED]
        return [*sent, *asked]

    def _enter(self, phase: str, situations: Sequence[Situation]) -> None:
        self._phase = phase
        for situation in situations:
            if situation.read is not None and situation.read.changes:
                change_user(self._stack, situation.read)
            bodies = situation.bodies
            answer = self._stack.clients.sqs.send_message_batch(  # together, so that those that race arrive together
                QueueUrl=self._stack.outputs[f"Queue{camel(situation.worker)}"],
                Entries=[{"Id": str(place), "MessageBody": body} for place, body in enumerate(bodies)],
            )
            taken = answer.get("Successful", [])
            self._sent[situation.name] = tuple(Sent(entry["MessageId"], bodies[int(entry["Id"])]) for entry in taken)

    def _ask(self, phase: str, situations: Sequence[Asked]) -> None:
        """Make the requests of all situations, one after another, while we look on.

        Side by side each would find no process that waits, and the stand-in would start a dozen at once.
        """
        self._phase = phase
        with ThreadPoolExecutor(1) as pool:
            asking = {asked.name: pool.submit(self._ask_one, asked) for asked in situations}
            self._wait(lambda: all(future.done() for future in asking.values()))
            answers = {name: future.result() for name, future in asking.items()}
        for asked in situations:
            self._answers[asked.name] = answers[asked.name]
            if (operation := first_operation(answers[asked.name])) is not None:
                self._observer.know(operation, asked.requests[0].user)

    def _ask_one(self, asked: Asked) -> tuple[Answer, ...]:
        answers: list[Answer] = []
        for request in asked.requests:
            answers += self._client.make(request, first_operation(answers))
        return tuple(answers)

    def _switch_relay(self, *, on: bool) -> None:
        self._outbox.switch_relay(on=on)
        self._observer.is_relay_on = on

    def _sweep_until(self, situations: Sequence[Asked]) -> None:
        """Call the sweeper each of the local stage's minutes, until it has sent what these wait for."""
        swept = float("-inf")

        def is_over() -> bool:
            nonlocal swept
            if time.monotonic() - swept >= MINUTE.total_seconds():
                self._outbox.sweep()
                swept = time.monotonic()
            return self._are_as_expected({asked.name for asked in situations})

        self._wait(is_over, PATIENCE / 2)

    def _stop_redis_for(self, outage: timedelta, situations: Sequence[Situation]) -> None:
        self._stack.valkey.stop()
        self._enter(f"Redis is stopped for {outage.total_seconds():.0f} s", situations)
        self._wait(lambda: False, outage)
        self._stack.valkey.start()

    def _as_expected_or_stuck(self, situations: Sequence[Situation | Asked]) -> Callable[[], bool]:
        names = {situation.name for situation in situations}
        before: list[Result] = []
        changed = time.monotonic()

        def is_over() -> bool:
            nonlocal before, changed
            now = [result for result in self.results() if result.name in names]
            if now != before:
                before, changed = now, time.monotonic()
            return self._are_as_expected(names) or time.monotonic() - changed > STANDSTILL.total_seconds()

        return is_over

    def _at_rest_or_calm(self) -> Callable[[], bool]:
        """All as it must be, or nothing on the way for so long that what is missing is lost."""
        everything = {each.name for each in (*SITUATIONS, *ASKED)}
        calm_since = time.monotonic()

        def is_over() -> bool:
            nonlocal calm_since
            if not self.observation.is_at_rest:
                calm_since = time.monotonic()
            is_calm = time.monotonic() - calm_since >= CALM.total_seconds()
            return self.observation.is_at_rest and (self._are_as_expected(everything) or is_calm)

        return is_over

    def _are_as_expected(self, names: Collection[str]) -> bool:
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
