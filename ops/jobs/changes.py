"""One job let run now, or cancelled; for the command line and the console alike. Each change is told to the audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ops.audit import Change, audited
from ops.exits import CommandError, Exit
from ops.jobs.shown import name_of
from ops.tables import text_of
from shared.desk.operator_records import Ending
from shared.errors import ClaimLost
from shared.job_record import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from ops.stack.deployed import Deployed
    from ops.tools import Tools
    from shared.job_record import JobView


@dataclass(frozen=True, slots=True)
class Deed:
    """A change of one job that may be made: `what` for the audit, the job as it was seen, and how it is changed."""

    what: str
    view: JobView
    do: Callable[[], None]


def releasing(view: JobView, tools: Tools, stack: Deployed, *, although_held: bool) -> Deed:
    """Let the next attempt begin at once; whoever holds the job commits nothing any more.

    Raises:
        CommandError: there is nothing to give back, or an attempt may be alive and nobody insists.
    """
    now = tools.clock.now()
    if view.status not in {Status.RUNNING, Status.RETRYING}:
        message = f"The job is {view.status.value}: there is nothing to give back."
        raise CommandError(message, Exit.REFUSED)
    if view.claim_until is not None and view.is_held(now) and not although_held:
        message = (
            f"An attempt holds the job until {text_of(view.claim_until)}, and may be alive. After that anybody takes it over;"
            " --force takes it away now, and what the attempt has done outside stays done."
        )
        raise CommandError(message, Exit.REFUSED)

    def give_back() -> None:
        operator = tools.operator(stack.jobs_table)
        operator.give_back(view, tools.tokens(), tools.clock.now(), although_held=although_held)

    return Deed("job release", view, give_back)


def cancelling(view: JobView, tools: Tools, stack: Deployed, *, although_begun: bool) -> Deed:
    """End a job as cancelled.

    Raises:
        CommandError: it has ended, or has begun and nobody insists.
    """
    if view.ended and view.status is not Status.UNKNOWN:  # which waits for people, where no job reconciles it
        message = f"The job has ended: it is {view.status.value}."
        raise CommandError(message, Exit.REFUSED)
    has_begun = view.status is not Status.ACCEPTED or view.begun_at is not None  # in a life before its replay, perhaps
    if has_begun and not although_begun:
        message = (
            f"The job is {view.status.value}, attempts {view.attempts}: what it has done outside stays done. Say"
            " --although-begun."
        )
        raise CommandError(message, Exit.REFUSED)

    def end() -> None:
        tools.operator(stack.jobs_table).end(view, Ending(Status.CANCELLED), tools.clock.now())

    return Deed("job cancel", view, end)


def done(deed: Deed, why: str, tools: Tools, stack: Deployed) -> str:
    """Tell the audit, change, and give how the job stands then.

    Raises:
        CommandError: the job has changed since it was looked at, or the audit cannot be written; nothing was done.
        Unavailable: a store did not answer.
    """
    record = deed.view.record
    with audited(tools, stack, Change(deed.what, name_of(deed.view), why, [record])) as ended:
        try:
            deed.do()
        except ClaimLost as error:
            message = "The job has changed since it was looked at: nothing was done. Look again."
            raise CommandError(message, Exit.LEFT) from error
        ended.counts["changed"] = 1
        now = tools.operator(stack.jobs_table).views([record]).get(record)
    return "gone" if now is None else now.status.value
