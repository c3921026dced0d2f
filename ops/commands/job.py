"""`tahan job`: how one job stands with all its attempts; letting its next attempt begin; cancelling it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.commands import job_list
from ops.commands.agreement import agreed
from ops.commands.words import command, group, may_change
from ops.exits import Exit
from ops.explained import explained
from ops.jobs.changes import cancelling, done, releasing
from ops.jobs.shown import in_full, job_named, name_of
from ops.tables import failure_of, show_failures
from shared.job_record import Status

if TYPE_CHECKING:
    import argparse

    from ops.commands.words import Commands
    from ops.jobs.changes import Deed
    from ops.jobs.job_records import Seen
    from ops.stack.deployed import Deployed
    from ops.tools import Tools

ID = "operation id (op_...), or the key of the job record"


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the group with its commands."""
    about = "look at one job, let it run now, cancel it"
    inner = group(commands, "job", about)
    job_list.add(inner, everywhere)
    show = command(inner, everywhere, "show", "how a job stands, with all its attempts", run_show)
    show.add_argument(
        "--payload", action="store_true", help="show its key, payload and result, too; masked fields stay masked"
    )
    about = "let the next attempt begin at once; whoever held the job commits nothing"
    release = command(inner, everywhere, "release", about, run_release)
    release.add_argument("--force", action="store_true", help="also while its attempt may still be running")
    about = "end a job as cancelled, if no attempt of it ever began"
    cancel = command(inner, everywhere, "cancel", about, run_cancel)
    cancel.add_argument("--although-begun", action="store_true", help="also a job that has begun, or is a dead letter")
    for parser in (release, cancel):
        may_change(parser)
    for parser in (show, release, cancel):
        parser.add_argument("id", metavar="ID", help=ID)


def run_show(options: argparse.Namespace, tools: Tools) -> Exit:
    """Show a job."""
    seen, _ = _seen(options, tools)
    fields = in_full(seen, tools.clock.now(), whole=options.payload)
    failures = [failure_of(failure) for failure in seen.view.failures]
    if options.json:
        tools.show({**fields, "failures": failures}, as_json=True)
    else:
        tools.show(fields, as_json=False)
        show_failures(tools, failures)
    return Exit.DONE


def run_release(options: argparse.Namespace, tools: Tools) -> Exit:
    """Let the next attempt begin."""
    seen, stack = _seen(options, tools)
    return _done(options, tools, stack, releasing(seen.view, tools, stack, although_held=options.force))


def run_cancel(options: argparse.Namespace, tools: Tools) -> Exit:
    """Cancel a job."""
    seen, stack = _seen(options, tools)
    view = seen.view
    if view.status is Status.CANCELLED:
        tools.show({"operation_id": name_of(view), "status": view.status.value, "changed": False}, as_json=options.json)
        return Exit.DONE
    ended = _done(options, tools, stack, cancelling(view, tools, stack, although_begun=options.although_begun))
    if view.status is Status.DEAD_LETTERED and not options.dry_run:
        tools.tell("Its dead letter is still there: `dlq discard` throws it away.")
    return ended


def _seen(options: argparse.Namespace, tools: Tools) -> tuple[Seen, Deployed]:
    """The job that is meant.

    Raises:
        CommandError: there is none.
    """
    with explained():
        stack = tools.deployed(options.stack)
    return job_named(options.id, tools, stack), stack


def _done(options: argparse.Namespace, tools: Tools, stack: Deployed, deed: Deed) -> Exit:
    """Agree, change, and show how the job stands then."""
    view, name = deed.view, name_of(deed.view)
    if options.dry_run:
        tools.show({"operation_id": name, "status": view.status.value, "changed": False}, as_json=options.json)
        return Exit.DONE
    agreed(tools, f"{deed.what.capitalize()} {name}, which is {view.status.value}?", yes=options.yes)
    with explained():
        status = done(deed, options.why, tools, stack)
    tools.show({"operation_id": name, "status": status, "changed": True}, as_json=options.json)
    return Exit.DONE
