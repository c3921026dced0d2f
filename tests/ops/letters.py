"""Dead letters of captures at a desk of memory."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from functions.payments import capture_payment
from shared.claim import Claim, Granted
from shared.dead_letter import dossier
from shared.job import JobTypes
from shared.job_record import SYSTEM, JobView, Status, record_id
from shared.outcome import DeadLettered, Failure
from shared.pipeline.run import read_run
from tests.ops.desk import OUTPUTS, Desk
from tests.world import START, World

QUEUE = OUTPUTS["QueuePayments"]
TRANSIENT = Failure(START, "transient", "Unavailable: 503", "aaaaaaaaaaaa", "payment-provider")
UNKNOWN_ORDER = Failure(START, "unknown-order", "DeadLetter: ", "bbbbbbbbbbbb")


def body_of(key: str) -> str:
    payload = {"order_id": f"secret-{key}", "payment_intent_id": "pi_secret"}
    return json.dumps({"job_type": "capture-payment", "idempotency_key": key, "payload": payload})


def record_of(key: str) -> str:
    return record_id(SYSTEM, "capture-payment", key)


def operation_of(key: str) -> str:
    return f"op_{record_of(key)}"


def bury(desk: Desk, key: str, failure: Failure = TRANSIENT, death: int = 1, **record: Any) -> None:
    """A capture dies of this: its letter and its job record."""
    delivery = World.of().delivery(body_of(key), **record)
    run = read_run(delivery, JobTypes.of(capture_payment), START)
    claim = replace(run.claim(f"token-{key}", START), death=death - 1)
    granted = desk.jobs.claim(claim, START)
    assert isinstance(granted, Granted)
    assert isinstance(claim, Claim)
    desk.queues[QUEUE].dead_letter(delivery, dossier(delivery, DeadLettered(failure, death, 1, names=run.names)))
    desk.jobs.bury(granted.hold, death, failure, START)


def bury_raw(desk: Desk, text: str) -> None:
    """A body that nobody can read."""
    delivery = World.of().delivery(text)
    failure = Failure(START, "malformed-json", "Malformed: line 1", "cccccccccccc")
    desk.queues[QUEUE].dead_letter(delivery, dossier(delivery, DeadLettered(failure, 1)))


def view(desk: Desk, key: str) -> JobView:
    return desk.jobs.records[record_of(key)]


def ends_well(desk: Desk) -> None:
    """Whatever is on the queue is done as soon as somebody looks."""

    def done(seconds: float) -> None:
        del seconds
        for record, seen in desk.jobs.records.items():
            if seen.status is Status.ACCEPTED:
                desk.jobs.records[record] = replace(seen, status=Status.COMPLETED)

    desk.clock.sleep = done  # type: ignore[method-assign]


def dead(desk: Desk) -> list[str]:
    """The letters' keys, or their bodies."""
    return [
        json.loads(letter.body)["idempotency_key"] if letter.body.startswith("{") else letter.body
        for letter in desk.queues[QUEUE].dead
    ]


def visible(desk: Desk) -> int:
    now = desk.clock.monotonic()
    return sum(letter.visible_at <= now for letter in desk.queues[QUEUE].dead)
