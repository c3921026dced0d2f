"""A job at the desk, for the tests of what is told and changed of single jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shared.job_record import JobView, Status, operation_id, record_id
from shared.outcome import Failure
from tests.ops.desk import Desk
from tests.world import START

RECORD = record_id("jwt:https://login.example.com:user-1", "capture-payment", "order-17/capture")
ID = operation_id(RECORD)
VIEW = JobView(
    RECORD,
    Status.ACCEPTED,
    0,
    "1:abc",
    payload='{"order_id":"order-17"}',
    names={
        "owner": "jwt:https://login.example.com:user-1",
        "job_type": "capture-payment",
        "idempotency_key": "order-17/capture",
        "operation_id": ID,
    },
)
FAILURE = Failure(START, "transient", "Unavailable: 503", "abc", "payment-provider")


def desk_with(view: JobView | None, **more: Any) -> Desk:
    desk = Desk()
    if view is not None:
        desk.jobs.records[RECORD] = replace(view, **more)
        desk.jobs.accepted_at[RECORD] = START
    return desk
