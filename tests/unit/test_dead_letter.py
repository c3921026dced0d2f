"""Reading a dead letter, with and without its reason."""

from __future__ import annotations

from typing import Any

import pytest

from shared.dead_letter import Death, how_it_died
from shared.job_record import JobView, Status
from tests.world import World, body


def view(status: Status, attempts: int) -> JobView:
    return JobView("r", status, attempts, "1:a")


@pytest.mark.parametrize(
    ("record", "death"),
    [
        (None, Death.NEVER_ATTEMPTED),
        (view(Status.ACCEPTED, 0), Death.NEVER_ATTEMPTED),
        (view(Status.RETRYING, 0), Death.NEVER_ATTEMPTED),
        (view(Status.RUNNING, 1), Death.SILENT),
        (view(Status.RETRYING, 2), Death.SILENT),
        (view(Status.COMPLETED, 1), Death.ENDED),
        (view(Status.UNKNOWN, 1), Death.ENDED),
    ],
    ids=str,
)
def test_bat_08_what_sqs_moved_by_itself_is_told_by_its_record(record: JobView | None, death: Death) -> None:
    letter = World.of().delivery(body(), system={"ApproximateReceiveCount": "3"})
    assert how_it_died(letter, record) is death


def test_what_the_consumer_sent_has_failed_whatever_its_record_says() -> None:
    reason = {"tahan.dead-letter": {"stringValue": '{"reason": "transient", "death": 1}', "dataType": "String"}}
    letter: Any = World.of().delivery(body(), attributes=reason)
    assert how_it_died(letter, None) is Death.FAILED


def test_a_copy_that_was_sent_anew_and_moved_by_sqs_did_not_fail_with_a_reason() -> None:
    letter: Any = World.of().delivery(body(), death=1)
    assert how_it_died(letter, None) is Death.NEVER_ATTEMPTED
