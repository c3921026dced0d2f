"""`tahan job`: how one job stands with all its attempts; letting its next attempt begin; cancelling it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ops.agreement import agreed
from ops.audit import Change, audited
from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.operation import described, record_named
from ops.tables import failure_of, show_failures, text_of
from shared.errors import ClaimLost
from shared.job_record import Status
from shared.operator_records import Ending

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ops.deployed import Deployed
    from ops.jobs import Seen
    from ops.tools import Tools
    from shared.job_record import JobView


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser) -> None:
    """Add the group with its commands."""
    about = "look at one job, let it run now, cancel it"
    inner = commands.add_parser("job", help=about, description=about.capitalize()).add_subparsers(
        required=True, metavar="COMMAND"
    )

    def command(name: str, about: str, run: Callable[[argparse.Namespace, Tools], Exit]) -> argparse.ArgumentParser:
        parser = inner.add_parser(name, help=about, description=about.capitalize(), parents=[everywhere])
        parser.add_argument("id", metavar="ID", help="operation id (op_...), or the key of the job record")
        parser.set_defaults(run=run)
        return parser

    show = command("show", "how a job stands, with all its attempts", run_show)
    show.add_argument(
        "--payload", action="store_true", help="show its key, payload and result, too; masked fields stay masked"
    )
    release = command(
        "release", "let the next attempt begin at once; whoever held the job commits nothing", run_release
    )
    release.add_argument("--force", action="store_true", help="also while its attempt may still be running")
    cancel = command("cancel", "end a job as cancelled, if no attempt of it ever began", run_cancel)
    cancel.add_argument("--although-begun", action="store_true", help="also a job that has begun, or is a dead letter")
    for parser in (release, cancel):
        parser.add_argument("--why", required=True, help="for the audit")
        parser.add_argument("--yes", action="store_true", help="ask nothing")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")


def run_show(options: argparse.Namespace, tools: Tools) -> Exit:
    """Show a job."""
    seen, _ = _seen(options, tools)
    view = seen.view
    fields = {
        **described(seen, tools.clock.now(), whole=options.payload),
        "replays": view.replays or None,
        "replayed_at": None if view.replayed is None else text_of(view.replayed.at),
        "replayed_by": None if view.replayed is None else view.replayed.by,
    }
    failures = [failure_of(failure) for failure in view.failures]
    if options.json:
        tools.show({**fields, "failures": failures}, as_json=True)
    else:
        tools.show(fields, as_json=False)
        show_failures(tools, failures)
    return Exit.DONE


def run_release(options: argparse.Namespace, tools: Tools) -> Exit:
    """Let the next attempt begin."""
    seen, stack = _seen(options, tools)
    view, now = seen.view, tools.clock.now()
    if view.status not in {Status.RUNNING, Status.RETRYING}:
        message = f"The job is {view.status.value}: there is nothing to give back."
        raise CommandError(message, Exit.REFUSED)
    if view.status is Status.RUNNING and view.claim_until is not None and view.claim_until >= now and not options.force:
        message = (
            f"An attempt holds the job until {text_of(view.claim_until)}, and may be alive. After that anybody takes it over;"
            " --force takes it away now, and what the attempt has done outside stays done."
        )
        raise CommandError(message, Exit.REFUSED)

    def give_back() -> None:
        operator = tools.operator(stack.jobs_table)
        operator.give_back(view, tools.tokens(), tools.clock.now(), although_held=options.force)

    return _done(options, tools, _Deed("job release", stack, view, give_back))


def run_cancel(options: argparse.Namespace, tools: Tools) -> Exit:
    """Cancel a job."""
    seen, stack = _seen(options, tools)
    view = seen.view
    if view.status is Status.CANCELLED:
        name = view.names.get("operation_id", view.record)
        tools.show({"operation_id": name, "status": view.status.value, "changed": False}, as_json=options.json)
        return Exit.DONE
    if view.ended and view.status is not Status.UNKNOWN:  # which waits for people, where no job reconciles it
        message = f"The job has ended: it is {view.status.value}."
        raise CommandError(message, Exit.REFUSED)
    has_begun = view.status is not Status.ACCEPTED or view.begun_at is not None  # in a life before its replay, perhaps
    if has_begun and not options.although_begun:
        message = (
            f"The job is {view.status.value}, attempts {view.attempts}: what it has done outside stays done. Say"
            " --although-begun."
        )
        raise CommandError(message, Exit.REFUSED)

    def end() -> None:
        tools.operator(stack.jobs_table).end(view, Ending(Status.CANCELLED), tools.clock.now())

    ended = _done(options, tools, _Deed("job cancel", stack, view, end))
    if view.status is Status.DEAD_LETTERED and not options.dry_run:
        tools.tell("Its dead letter is still there: `dlq discard` throws it away.")
    return ended


def _seen(options: argparse.Namespace, tools: Tools) -> tuple[Seen, Deployed]:
    """The job that is meant.

    Raises:
        CommandError: there is none.
    """
    record = record_named(options.id)
    with explained():
        stack = tools.deployed(options.stack)
        seen = tools.jobs(stack.jobs_table).look(record)
    if seen is None:
        message = (
            "There is no such job: it was never accepted, no worker has begun it yet, or it ended over 30 days ago."
        )
        raise CommandError(message, Exit.ABSENT)
    return seen, stack


@dataclass(frozen=True, slots=True)
class _Deed:
    """A change of one job."""

    what: str
    stack: Deployed
    view: JobView
    do: Callable[[], None]


def _done(options: argparse.Namespace, tools: Tools, deed: _Deed) -> Exit:
    """Agree, tell, change, and show how the job stands then."""
    view, name = deed.view, deed.view.names.get("operation_id", deed.view.record)
    if options.dry_run:
        tools.show({"operation_id": name, "status": view.status.value, "changed": False}, as_json=options.json)
        return Exit.DONE
    agreed(tools, f"{deed.what.capitalize()} {name}, which is {view.status.value}?", yes=options.yes)
    with explained(), audited(tools, deed.stack, Change(deed.what, name, options.why, [view.record])) as outcome:
        try:
            deed.do()
        except ClaimLost as error:
            message = "The job has changed since it was looked at: nothing was done. Look again."
            raise CommandError(message, Exit.LEFT) from error
        outcome.counts["changed"] = 1
        found = tools.operator(deed.stack.jobs_table).views([view.record])
    now = found.get(view.record)
    status = "gone" if now is None else now.status.value
    tools.show({"operation_id": name, "status": status, "changed": True}, as_json=options.json)
    return Exit.DONE
