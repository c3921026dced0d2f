"""What a granted claim makes of a job record: the value that every store writes, and that the attempt works with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shared.claim import Step, is_another_job, names_before
from shared.job_record import JobView, Status, operation_id

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from shared.claim import Claim


def claimed(step: Step, seen: JobView | None, claim: Claim, now: datetime, lost_after: timedelta) -> JobView:
    """The record after the write that `step` names, on the record seen; after `lost_after` an accepted job's message is looked for."""
    view = seen if step is Step.INCREMENT and seen is not None else _begun(seen, claim, now, lost_after)
    return replace(
        view,
        status=Status.RUNNING,
        attempts=view.attempts + 1,
        token=claim.token,
        job_id=claim.job_id or "" if view.job_id is None else view.job_id,
        trace=claim.trace or "" if view.trace is None else view.trace,
        claim_until=claim.until,
        not_before=None,
        begun_at=view.begun_at or now,
    )


def _begun(seen: JobView | None, claim: Claim, now: datetime, lost_after: timedelta) -> JobView:
    """A life begun anew, of a job that was never seen, of another job under the same key, or of a dead letter's job."""
    owner = claim.owner if seen is None else seen.names.get("owner", claim.owner)
    fresh = JobView(
        claim.record,
        Status.RUNNING,
        0,
        claim.fingerprint,
        claim.death,
        payload=claim.payload,
        job_id=claim.job_id or "",
        trace=claim.trace or "",
        version=claim.version,
        run_at=claim.run_at,
        look_at=now + lost_after if claim.accepted else None,
        earlier=() if seen is None else seen.earlier if claim.reopens is None else names_before(seen),
        begun_at=now,
        names={
            "owner": owner,
            "job_type": claim.job_type,
            "idempotency_key": claim.idempotency_key,
            "operation_id": operation_id(claim.record),
        },
    )
    if seen is None or is_another_job(seen, claim, now):
        return fresh
    return replace(
        fresh,
        begun_at=seen.begun_at or now,
        intents=seen.intents,
        checkpoints=seen.checkpoints,
        checkpoint=seen.checkpoint,
        checkpoint_tags=seen.checkpoint_tags,
        stepped_at=seen.stepped_at,
        progress=seen.progress,
        split=seen.split,
        tally=seen.tally,
        cancelling=seen.cancelling,
        place=seen.place,
    )
