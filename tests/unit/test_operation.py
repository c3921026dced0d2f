"""What a client is told of its job: running is what somebody works on, and how far it is goes along."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.commit import Progress
from shared.intake.operation import OperationStatus, operation_of
from shared.job_record import JobView, Status
from tests.world import START

NAMES = {"operation_id": "op_1", "job_type": "note"}


def view(status: Status, **more: Any) -> JobView:
    return JobView("r", status, 1, "1:a", names=NAMES, **more)


@pytest.mark.parametrize(
    ("until", "told"),
    [
        (START, OperationStatus.RUNNING),  # a claim whose deadline is now still holds
        (START + timedelta(seconds=1), OperationStatus.RUNNING),
        (START - timedelta(milliseconds=1), OperationStatus.RETRYING),
    ],
)
def test_r5_1_a_job_is_running_while_its_attempt_keeps_its_claim(until: Any, told: OperationStatus) -> None:
    assert operation_of(view(Status.RUNNING, claim_until=until), START).status is told


def test_an_old_claim_says_nothing_of_a_job_that_has_ended() -> None:
    ended = view(Status.COMPLETED, claim_until=START - timedelta(hours=1), result="{}")
    assert operation_of(ended, START).status is OperationStatus.DONE


def test_progress_is_told_as_it_was_noted() -> None:
    progress = Progress(3, START, 9, "rows")
    assert operation_of(view(Status.RUNNING, claim_until=START, progress=progress), START).progress == progress
    assert operation_of(view(Status.ACCEPTED), START).progress is None
