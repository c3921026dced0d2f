"""Seeks among the job records of every owner, a part of the table at a time, in no order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from functions.registry import JOB_TYPES
from ops.exits import CommandError, Exit
from shared.intake.operation import OperationStatus, operation_of
from shared.job_record import SYSTEM
from shared.message import Message
from shared.pipeline.run import lock_keys
from shared.wire.parsing import typed_payload

if TYPE_CHECKING:
    from datetime import datetime

    from ops.jobs.job_records import Some
    from ops.stack.deployed import Deployed
    from ops.tools import Tools
    from shared.job_record import JobView

PLACE = re.compile("[0-9A-Za-z_/:.-]{1,200}")


@dataclass(frozen=True, slots=True)
class Sought:
    """What is sought among the jobs; everything that is given must hold.

    Attributes:
        state: as clients see it, and the desk.
        key: idempotency key.
        resource: a lock key, of a job whose payload is still there.
        owner: of those over HTTP; `system` for those straight from a queue.
    """

    state: OperationStatus | None = None
    job_type: str | None = None
    key: str | None = None
    resource: str | None = None
    owner: str | None = None

    def fits(self, view: JobView, now: datetime) -> bool:
        """Whether the job is sought."""
        names = view.names
        return (
            "operation_id" in names
            and self.job_type in {None, names.get("job_type")}
            and self.key in {None, names.get("idempotency_key")}
            and self.owner in {None, names.get("owner", SYSTEM)}
            and (self.state is None or operation_of(view, now).status is self.state)
            and (self.resource is None or self.resource in resources_of(view))
        )


def resources_of(view: JobView) -> tuple[str, ...]:
    """The lock keys of a job; none where it has ended, since its payload is gone then."""
    if view.payload is None:
        return ()
    message = Message(view.names["job_type"], view.version, view.names["idempotency_key"], view.payload)
    try:
        job, payload = typed_payload(message, JOB_TYPES)
        return lock_keys(job, payload)
    except Exception:  # noqa: BLE001 - of another deploy, deposited, or by an author's lock that fails on it
        return ()


def some_jobs(sought: Sought, most: int, after: str | None, tools: Tools, stack: Deployed) -> Some:
    """Some of the jobs that are sought.

    Raises:
        CommandError: the place to go on from is none.
        Unavailable: the store did not answer.
    """
    if after is not None and not PLACE.fullmatch(after):
        message = "--next: this is no place that a look has told."
        raise CommandError(message, Exit.REFUSED)
    now = tools.clock.now()
    return tools.jobs(stack.jobs_table).some(lambda view: sought.fits(view, now), most, after)
