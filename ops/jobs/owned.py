"""The jobs that were accepted for an owner, a page at a time; and a job as a row of a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.exits import CommandError, Exit
from ops.tables import text_of
from shared.errors import Malformed
from shared.intake.operation import operation_of
from shared.intake.owned_jobs import Place

if TYPE_CHECKING:
    from datetime import datetime

    from ops.stack.deployed import Deployed
    from ops.tools import Tools
    from shared.job_record import JobView


def page_of(
    owner: str, limit: int, place: str | None, tools: Tools, stack: Deployed
) -> tuple[list[dict[str, str]], str | None]:
    """The rows of a page of an owner's jobs, and where the next one begins.

    Raises:
        CommandError: the place was not told for this owner's list.
        Unavailable: the store did not answer.
    """
    try:
        after = None if place is None else Place.read(place, owner)
    except Malformed as error:
        message = "--next: this place was not told for this owner's list."
        raise CommandError(message, Exit.REFUSED) from error
    now = tools.clock.now()
    page = tools.owned(stack.jobs_table).page(owner, limit, after, now)
    following = None if page.next is None else page.next.written(owner)
    return [row_of(job.view, job.created_at, now) for job in page.jobs], following


def row_of(view: JobView, created_at: datetime | None, now: datetime) -> dict[str, str]:
    """A job in a list; nothing personal."""
    operation = operation_of(view, now)
    return {
        "operation_id": operation.operation_id,
        "job_type": operation.job_type,
        "status": operation.status.value,
        "created_at": text_of(created_at) or "",
    }
