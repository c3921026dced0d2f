"""`tahan enqueue`: puts a job on its worker's queue. What the consumer would refuse is refused here, before anything is sent."""

from __future__ import annotations

import difflib
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from functions.registry import JOB_TYPES, WORKER_OF
from ops.commands.words import command
from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.jobs.payloads import refusal
from shared.errors import Malformed, NewerVersion
from shared.job import JobTypes, Unique
from shared.job_record import SYSTEM, operation_id, record_id
from shared.limits import LONGEST_DELAY, check_group
from shared.message import Message, check_key, check_run_at, payload_of
from shared.outbox import check_schedule
from shared.trace import begun
from shared.wire.parsing import read_message, typed_payload

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from ops.commands.words import Commands
    from ops.tools import Tools
    from shared.job import Job
    from shared.worker import Worker


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    about = "put a job on its worker's queue"
    parser = command(commands, everywhere, "enqueue", about, run)
    parser.add_argument("job_type", metavar="JOB_TYPE", help="as it is declared; an unknown one lists those that are")
    parser.add_argument("--key", required=True, help="the idempotency key: names the intent, and one key is one job")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--payload", metavar="JSON", help="the job's arguments; by default {}")
    source.add_argument("--payload-file", metavar="FILE", help="a file with them")
    source.add_argument("-", dest="from_stdin", action="store_true", help="read them from standard input")
    parser.add_argument(
        "--version", type=int, metavar="N", help="of the payload's schema, if it is an earlier one that is still read"
    )
    parser.add_argument("--run-at", metavar="ISO", help="do not run it before, like 2026-12-24T18:00:00+01:00")
    parser.add_argument(
        "--delay", type=int, default=0, metavar="S", help="seconds that it waits on the queue, up to 900"
    )
    parser.add_argument("--group", help="message group: order on a FIFO queue, fairness between groups on others")
    parser.add_argument("--tenant", help="whose turn it takes on a standard queue, where no group is named")
    parser.add_argument("--dry-run", action="store_true", help="say what would be sent; asks AWS nothing")


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Check it, send it, and tell under which names it is found.

    Raises:
        CommandError: it would be refused, or was not sent.
    """
    worker, job = _declared(options.job_type)
    if worker.fifo and options.group is None:
        refusal = f"The worker {worker.name} has a FIFO queue: name the group with --group."
        raise CommandError(refusal, Exit.REFUSED)
    message = _message(options, job, tools)
    fields = _fields(message, job, worker.name)
    if (note := _waits(message, options.delay, tools.clock.now())) is not None:
        tools.tell(note)
    if options.dry_run:
        tools.show({**fields, "sent": False}, as_json=options.json)
        return Exit.DONE
    with explained():
        producer = tools.producer(tools.deployed(options.stack).queue_of(worker.name))
        sent = producer.enqueue(message, delay=timedelta(seconds=options.delay), group=options.group)
    tools.show({**fields, "sent": True, "message_id": sent}, as_json=options.json)
    return Exit.DONE


def _declared(name: str) -> tuple[Worker, Job[Any, Any]]:
    known = JOB_TYPES.by_name
    if name in known:
        return WORKER_OF[name], known[name]
    near = difflib.get_close_matches(name, known, n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    listed = "".join(f"\n  {job} (worker {worker.name})" for job, worker in sorted(WORKER_OF.items()))
    message = f"There is no job type {name!r}.{meant} There are:{listed}"
    raise CommandError(message, Exit.REFUSED)


def _message(options: argparse.Namespace, job: Job[Any, Any], tools: Tools) -> Message:
    """The message, checked as the consumer will check it.

    Raises:
        CommandError: what is wrong, field by field.
    """
    try:
        message = Message(
            job.name,
            job.version if options.version is None else options.version,
            check_key(options.key),
            payload_of(payload_text(options, tools)),
            run_at=_run_at(options.run_at),
            trace=begun(tools.tokens),
            tenant=options.tenant,
        )
        check_schedule(message, tools.clock.now())
        typed_payload(read_message(message.body()), JobTypes.of(job))
    except Malformed as error:
        raise CommandError(refusal(job, error), Exit.REFUSED) from error
    except NewerVersion as error:
        text = f"--version {options.version}: {job.name} is at version {job.version}."
        raise CommandError(text, Exit.REFUSED) from error
    if not 0 <= options.delay <= LONGEST_DELAY.total_seconds():
        text = (
            f"--delay {options.delay}: a queue delays up to {LONGEST_DELAY.total_seconds():.0f} seconds; use --run-at."
        )
        raise CommandError(text, Exit.REFUSED)
    with explained():
        if options.group is not None:
            check_group(options.group)
    return message


def payload_text(options: argparse.Namespace, tools: Tools) -> str:
    """The payload as it was given: as an argument, in a file, or on standard input.

    Raises:
        CommandError: it cannot be read.
    """
    if options.payload_file is not None:
        try:
            return Path(options.payload_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            message = f"The payload's file cannot be read: {options.payload_file} ({type(error).__name__})."
            raise CommandError(message, Exit.REFUSED) from error
    if options.from_stdin:
        try:
            return tools.stdin.read()
        except UnicodeDecodeError as error:
            message = "Standard input is no UTF-8."
            raise CommandError(message, Exit.REFUSED) from error
    return "{}" if options.payload is None else str(options.payload)


def _run_at(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Malformed("invalid-run-at", f"--run-at {text}: give a time like 2026-12-24T18:00:00+01:00") from error
    if moment.tzinfo is None:
        raise Malformed("invalid-run-at", f"--run-at {text}: say in which zone, like {text}Z or {text}+01:00")
    check_run_at(moment)
    return moment


def _fields(message: Message, job: Job[Any, Any], worker: str) -> Mapping[str, object]:
    # Whose key is used anew after its job's end, the consumer alone knows the record.
    record = None if job.unique is Unique.WHILE_ACTIVE else record_id(SYSTEM, job.name, message.idempotency_key)
    return {
        "job_type": job.name,
        "worker": worker,
        "run_at": None if message.run_at is None else message.run_at.isoformat(),
        "operation_id": None if record is None else operation_id(record),
        "record": record,
        "trace_id": None if message.trace is None else message.trace.trace_id,
    }


def _waits(message: Message, delay: int, now: datetime) -> str | None:
    """What people should know of a job for later."""
    wait = message.wait(now)
    if message.run_at is not None and not wait:
        return "That time has passed: it runs at once."
    if wait > LONGEST_DELAY:
        return "The queue holds it for 15 minutes, then the outbox keeps it until its time: nothing else is to be done."
    return f"It waits on the queue for {delay} s." if delay else None
