"""The message of a job, made anew from its record: for a job that has lost it, and for one that has waited for its parts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shared.dead_letter import reopening
from shared.job_record import SYSTEM
from shared.message import Message
from shared.outbox import posting_of
from shared.trace import read_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.job_record import JobView
    from shared.outbox import Posting


def posting_again(view: JobView, workers: Mapping[str, str], name: str) -> Posting | None:
    """The job's message under a name; None where it cannot be sent: no worker is known for it, or its payload is gone.

    Raises:
        Refused: SQS would refuse it.
    """
    names = view.names
    worker = workers.get(names["job_type"])
    if worker is None or view.payload is None:
        return None
    owner = None if names["owner"] == SYSTEM else names["owner"]
    message = Message(
        names["job_type"],
        view.version,
        names["idempotency_key"],
        view.payload,
        job_id=view.job_id or None,
        trace=read_trace(view.trace),
        record=view.record if owner is not None or view.place is not None else None,
        run_at=view.run_at,
        tenant=owner,
    )
    posting = posting_of(message, name, worker)
    return replace(posting, attributes=reopening(view.death)) if view.death else posting
