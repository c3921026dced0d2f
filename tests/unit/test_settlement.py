"""How outcomes are told to SQS, and what happens when SQS does not answer."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.dead_letter import dossier
from shared.errors import ClaimLost, Refused, StoreUnavailable, Unavailable
from shared.job_record import Hold, JobView, Status
from shared.limits import DEAD_LETTER_BYTES
from shared.outcome import Because, Completed, DeadLettered, Duplicate, Failure, Outcome, Postponed, Retried, Unknown
from shared.settlement import Settlement
from tests.world import START, World, body

FAILURE = Failure(START, "unknown-order", "DeadLetter: x", "abcdef123456", "shop")
DEAD = DeadLettered(FAILURE, 2, attempts=3, hold=Hold("r", "t"), names={"idempotency_key": "k"})


class Order:
    """Notes the order of steps; a step named in `fails` raises."""

    def __init__(self, view: JobView | None, fails: dict[str, Exception]) -> None:
        self.steps: list[str] = []
        self.seen = view
        self.fails = fails

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if name in self.fails:
            raise self.fails[name]

    def view(self, record: str) -> JobView | None:
        return self.seen

    def hide(self, *arguments: Any) -> None:
        self._step("hide")

    def dead_letter(self, *arguments: Any) -> None:
        self._step("send")

    def bury(self, *arguments: Any) -> None:
        self._step("mark")


HELD = JobView("r", Status.RUNNING, 3, "1:a", token="t")


def settle(outcome: Outcome, view: JobView | None = HELD, **fails: Exception) -> tuple[bool, list[str]]:
    world = World.of()
    order = Order(view, fails)
    settlement = Settlement(world.worker, order, order, order, world.clock, world.telemetry)  # type: ignore[arg-type]
    return settlement.settle(world.delivery(body()), outcome), order.steps


@pytest.mark.parametrize("outcome", [Completed(1), Duplicate("completed"), Unknown()], ids=repr)
def test_what_is_done_is_acknowledged(outcome: Outcome) -> None:
    assert settle(outcome) == (True, [])


@pytest.mark.parametrize(
    "outcome",
    [Retried(timedelta(seconds=5), FAILURE, 1), Postponed(timedelta(seconds=5), Because.CONTENDED)],
    ids=lambda outcome: type(outcome).__name__,
)
def test_what_waits_is_hidden_and_comes_back(outcome: Outcome) -> None:
    assert settle(outcome) == (False, ["hide"])
    assert settle(outcome, hide=Unavailable("x", dependency="sqs")) == (False, ["hide"])
    assert settle(outcome, hide=Refused("the receipt is stale")) == (False, ["hide"])


def test_a_wait_never_exceeds_what_sqs_can_hide() -> None:
    world = World.of()
    delivery = world.delivery(body(), attributes={"n": {"stringValue": "1", "dataType": "Number"}})  # not sent anew
    world.runtime.settlement.settle(delivery, Postponed(timedelta(days=3), Because.TOO_EARLY))
    assert timedelta(hours=11) < world.queue.hidden[delivery.message_id] < timedelta(hours=12)


def test_a_dead_letter_is_sent_then_marked_then_acknowledged() -> None:
    assert settle(DEAD) == (True, ["send", "mark"])


def test_a_dead_letter_that_was_not_sent_is_neither_marked_nor_acknowledged() -> None:
    assert settle(DEAD, send=Unavailable("x", dependency="sqs")) == (False, ["send", "hide"])
    assert settle(DEAD, send=Refused("too large")) == (False, ["send", "hide"])


def test_a_dead_letter_that_was_not_marked_is_not_acknowledged() -> None:
    assert settle(DEAD, mark=StoreUnavailable("x")) == (False, ["send", "mark", "hide"])


@pytest.mark.parametrize(
    "view",
    [None, replace(HELD, token="other"), replace(HELD, status=Status.COMPLETED)],
    ids=["gone", "taken-over", "completed-after-all"],
)
def test_a_job_that_ended_or_was_taken_over_is_not_dead_lettered_and_its_message_comes_back(
    view: JobView | None,
) -> None:
    assert settle(DEAD, view) == (False, ["hide"])
    assert settle(DEAD, mark=ClaimLost()) == (False, ["send", "mark", "hide"])


def test_a_dossier_says_why_when_and_what() -> None:
    facts = json.loads(dossier(World.of().delivery(body()), DEAD))
    assert facts == {
        "reason": "unknown-order",
        "error": "DeadLetter: x",
        "signature": "abcdef123456",
        "attempts": 3,
        "first_failure": START.isoformat(),
        "last_failure": START.isoformat(),
        "dependency": "shop",
        "death": 2,
        "idempotency_key": "k",
    }


def test_a_dossier_fits_into_what_producers_keep_free() -> None:
    long = DeadLettered(FAILURE, 1, names={"idempotency_key": "k", "job_id": "\u4e2d" * 3000})
    text = dossier(World.of().delivery(body()), long)
    assert len(text.encode()) < DEAD_LETTER_BYTES - 100
    assert json.loads(text)["reason"] == "unknown-order"


NEARLY = {"system": {"ApproximateReceiveCount": "120"}}  # of 123


def came_back(**record: Any) -> tuple[World, bool]:
    world = World.of()
    waiting = Postponed(timedelta(seconds=40), Because.INVALIDATION_FAILED)
    return world, world.runtime.settlement.settle(world.delivery(body(), **record), waiting)


def test_a_message_that_sqs_would_soon_move_away_is_sent_anew_with_its_attributes_and_acknowledged() -> None:
    world, acknowledged = came_back(death=2, group="tenant", **NEARLY)
    assert acknowledged
    (posting,) = world.database.outbox.values()
    assert (posting.worker, posting.body, posting.delay) == ("notes", body(), timedelta(seconds=40))
    assert posting.group == "tenant"
    assert json.loads(posting.attributes["tahan.dead-letter"])["death"] == 2
    assert world.queue.hidden == {}


def test_a_message_with_receives_left_or_attributes_that_are_no_strings_is_hidden() -> None:
    binary = {"attributes": {"b": {"binaryValue": "AA==", "dataType": "Binary"}}}
    number = {"attributes": {"n": {"stringValue": "0.10", "dataType": "Number"}}}
    for record in ({"system": {"ApproximateReceiveCount": "119"}}, {**NEARLY, **binary}, {**NEARLY, **number}):
        world, acknowledged = came_back(**record)
        assert not acknowledged
        assert world.database.outbox == {}
        assert world.queue.hidden


def test_a_fifo_message_keeps_its_place() -> None:
    world = World.of()
    world.worker = replace(world.worker, fifo=True)
    delivery = world.delivery(body(), group="g", **NEARLY)
    assert not world.runtime.settlement.settle(delivery, Postponed(timedelta(0), Because.CONTENDED))
    assert world.database.outbox == {}
