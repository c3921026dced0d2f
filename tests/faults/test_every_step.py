"""Whatever step of a delivery dies, or loses its reply, or fails, once or twice in a row: the end is the same.

The steps are not listed: a first run counts them, so that a step added to the pipeline is tested without a word here.
Runs as it is, with every lease granted, and with Redis gone, since no correctness may rest on either.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions import payments
from shared.backends.memory.database import MemoryDatabase
from shared.caching.lives import Lives
from shared.caching.store import Loaded, Miss
from shared.dependency import Reply
from shared.errors import Unavailable
from shared.item import Stored
from shared.job_record import Status
from shared.wire.parsing import read_message
from tests.faults import mortal
from tests.faults.mortal import Died, Fault, Life
from tests.modes import CACHES, Mode, asked_for
from tests.world import FakeClock, NotingQueue, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.job_record import JobView

DAY = timedelta(days=1)
TAG = "order/o"
OLD = Loaded("pending")


@dataclass
class Provider:
    """Charges once a key, and can lose an answer or be busy."""

    charges: Counter[str] = field(default_factory=Counter)
    known: set[str] = field(default_factory=set)
    busy: int = 0

    def __call__(self, method: str, path: str, body: Any, headers: Any) -> Reply:
        if self.busy:
            self.busy -= 1
            raise Unavailable("503", dependency="payment-provider")
        charge = {"charge_id": "ch", "payment_intent_id": "pi", "amount": "1", "currency": "EUR"}
        if method == "GET":
            return Reply(200, {"charges": [charge] if self.known else []})
        key = headers["Idempotency-Key"]
        if key not in self.known:
            self.known.add(key)
            self.charges[body["payment_intent_id"]] += 1
        return Reply(201, charge)


@dataclass
class Case:
    """One message sent to payments, delivered again until it is acknowledged, with the outbox relayed in between."""

    mode: Mode
    body: str
    busy: int = 0

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.database = MemoryDatabase(self.clock)
        self.cache = CACHES[self.mode](self.clock)
        self.queue = NotingQueue()
        self.provider = Provider(busy=self.busy)
        self.world = World(payments.WORKER, self.clock)
        self.database.items["orders", ("o",)] = Stored(
            {
                "order_id": "o",
                "user_id": "u",
                "amount": "1",
                "currency": "EUR",
                "payment_intent_id": "pi",
                "status": "pending",
            },
            1,
        )
        # What a reader cached before anything happened, and a reader that is still loading the old value.
        first = self.cache.fetch(TAG, "view", "reader-1", DAY, None)
        assert isinstance(first, Miss)
        self.cache.store(TAG, "view", "reader-1", OLD, Lives(DAY, DAY))
        self.cache.fetch(TAG, "late", "reader-2", DAY, None)
        self.acknowledged: list[str] = []

    def deliver(self, body: str, life: Life) -> bool:
        world = self.world
        world.database = mortal.database(self.database, life)
        world.cache = mortal.cache(self.cache, life)
        world.queue = mortal.queue(self.queue, life)
        world.transport = mortal.transport(_Transport(self.provider), life)
        try:
            _, acknowledged = world.run(body)
        except Died:
            return False
        return acknowledged

    def run_to_the_end(self, lives: list[Life]) -> None:
        """Deliver until nothing is left; the first deliveries live the lives given."""
        waiting = [self.body]
        relayed: set[str] = set()
        for turn in range(60):
            life = lives[turn] if turn < len(lives) else Life()
            body = waiting.pop(0)
            if not self.deliver(body, life):
                waiting.append(body)
            else:
                self.acknowledged.append(body)
            fresh = [p for p in self.database.outbox.values() if p.id not in relayed]
            relayed |= {posting.id for posting in fresh}
            waiting += [posting.body for posting in fresh]
            self.clock.pass_(timedelta(minutes=16))
            if not waiting:
                return
        pytest.fail(f"not at rest: {waiting}")

    def records(self) -> dict[str, JobView]:
        return {view.names["job_type"]: view for view in self.database.records.values()}


@dataclass
class _Transport:
    answer: Callable[[str, str, Any, Any], Reply]

    def send(self, dependency: Any, method: str, path: str, *, body: Any, headers: Any, within: Any) -> Reply:
        return self.answer(method, path, body, headers)


def message(**changes: Any) -> str:
    payload = {"order_id": "o", "payment_intent_id": "pi"}
    return json.dumps({"job_type": "capture-payment", "idempotency_key": "k", "payload": payload, **changes})


def steps(case: Case) -> int:
    """How many steps a delivery has when nothing fails."""
    life = Life()
    case.run_to_the_end([life])
    assert life.steps
    return len(life.steps)


def every_fault(make: Callable[[], Case]) -> list[tuple[Case, list[Life]]]:
    """All cases: each step, each fault, once and twice in a row."""
    return [
        (make(), [Life(at, fault) for _ in range(times)])
        for at in range(steps(make()))
        for fault in Fault
        for times in (1, 2)
    ]


def check_paid(case: Case, lives: list[Life]) -> None:
    assert lives[0].fired, "the fault did not fire"
    order = case.database.items["orders", ("o",)]
    assert (order.attributes["status"], order.version) == ("paid", 2), "one effect"
    assert case.provider.charges == {"pi": 1}, "charged once"
    statuses = {name: view.status for name, view in case.records().items()}
    assert statuses["capture-payment"] is Status.COMPLETED, statuses
    assert set(statuses.values()) == {Status.COMPLETED}, statuses
    assert isinstance(case.cache.fetch(TAG, "view", "r", DAY, None), Miss), (
        "no old value is read after the acknowledgement"
    )
    assert not case.cache.store(TAG, "late", "reader-2", OLD, Lives(DAY, DAY)), "no late refill brings it back"
    assert not case.queue.dead, "nothing died"


@pytest.mark.parametrize("mode", asked_for())
def test_a_capture_has_one_effect_whatever_fails(mode: Mode) -> None:
    cases = every_fault(lambda: Case(mode, message()))
    for case, lives in cases:
        case.run_to_the_end(lives)
        check_paid(case, lives)
    assert len(cases) >= 4 * 8  # claim, read, charge, commit at the least


@pytest.mark.parametrize("mode", asked_for())
def test_a_capture_that_was_busy_before_has_one_effect_whatever_fails(mode: Mode) -> None:
    """The first delivery is retried: its steps include giving the claim back and hiding the message."""
    for case, lives in every_fault(lambda: Case(mode, message(), busy=1)):
        case.run_to_the_end(lives)
        check_paid(case, lives)


@pytest.mark.parametrize("mode", asked_for())
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (message(payload={"order_id": "absent", "payment_intent_id": "pi"}), "unknown-order"),
        (message(payload={"order_id": "o", "payment_intent_id": "other"}), "other-intent"),
        (message(idempotency_key=" "), "missing-idempotency-key"),
    ],
    ids=["unknown-order", "other-intent", "no-key"],
)
def test_a_hopeless_message_is_dead_lettered_and_never_lost_whatever_fails(mode: Mode, body: str, reason: str) -> None:
    for case, lives in every_fault(lambda: Case(mode, body)):
        case.run_to_the_end(lives)
        assert lives[0].fired
        assert {json.loads(text)["reason"] for _, text in case.queue.dead} <= {reason, "attempts-spent", "transient"}
        assert case.queue.dead, "it is in the dead-letter queue"
        assert all(delivery.body == body for delivery, _ in case.queue.dead)
        assert case.provider.charges == {}
        assert {view.status for view in case.database.records.values()} <= {Status.DEAD_LETTERED}


@pytest.mark.parametrize("fault", Fault)
def test_a_lost_answer_of_the_provider_ends_in_one_charge(fault: Fault) -> None:
    case = Case(Mode.NORMAL, message())
    at = _step_of(Case(Mode.NORMAL, message()), "provider.send")
    lives = [Life(at, fault)]
    case.run_to_the_end(lives)
    check_paid(case, lives)
    reconciled = [read_message(body).job_type for body in case.acknowledged]
    assert ("reconcile-payment" in reconciled) == (fault in {Fault.REPLY_LOST, Fault.NOT_DONE})


def _step_of(case: Case, name: str) -> int:
    life = Life()
    case.run_to_the_end([life])
    return life.steps.index(name)
