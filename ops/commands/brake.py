"""`tahan pause|resume|drain WORKER`: the brake on a worker's queue, by hand. Messages wait; nothing is lost.

A brake set by hand has an end, at which the watchdog takes it off, whatever became of who set it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ops.audit import Change, audited
from ops.commands.agreement import agreed
from ops.exits import CommandError, Exit
from ops.explained import explained
from shared.rounds.brake import Brake, BrakeState, apply, free

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ops.stack.deployed import Deployed
    from ops.tools import Tools

UNITS = {"s": 1, "m": 60, "h": 3600}
USUAL = "1h"
LONGEST = timedelta(hours=24)  # after four days messages are lost: a pause must not come near
LOOK_EVERY = 2.0


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser) -> None:
    """Add the three commands."""

    def command(name: str, about: str, run: Callable[[argparse.Namespace, Tools], Exit]) -> argparse.ArgumentParser:
        parser = commands.add_parser(name, help=about, description=about.capitalize(), parents=[everywhere])
        parser.add_argument("worker", metavar="WORKER")
        parser.add_argument("--why", required=True, help="for the audit, and for whoever finds it paused")
        parser.add_argument("--yes", action="store_true", help="ask nothing")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")
        parser.set_defaults(run=run)
        return parser

    pause = command("pause", "let a worker receive nothing more for a while", run_pause)
    drain = command("drain", "pause a worker, and wait until nothing of it runs", run_drain)
    for parser in (pause, drain):
        parser.add_argument(
            "--for", dest="time", default=USUAL, metavar="TIME", help=f"like 90s, 30m or 2h; by default {USUAL}"
        )
    drain.add_argument("--timeout", type=int, default=1800, metavar="S", help="seconds to wait, by default 1800")
    command("resume", "let a worker receive again", run_resume)


def run_pause(options: argparse.Namespace, tools: Tools) -> Exit:
    """Pause a worker."""
    _, fields = _paused(options, tools, "pause")
    tools.show(fields, as_json=options.json)
    return Exit.DONE


def run_drain(options: argparse.Namespace, tools: Tools) -> Exit:
    """Pause a worker and wait until nothing of it is in flight."""
    stack, fields = _paused(options, tools, "drain")
    if options.dry_run:
        tools.show(fields, as_json=options.json)
        return Exit.DONE
    with explained():
        left = _wait(options, tools, stack)
    tools.show({**fields, "in_flight": left}, as_json=options.json)
    if left:
        tools.tell(
            "Still in flight when the time was up: what runs, and what waits hidden on the queue for its next attempt."
        )
        return Exit.UNDER_WAY
    return Exit.DONE


def run_resume(options: argparse.Namespace, tools: Tools) -> Exit:
    """Free a worker, whoever braked it."""
    with explained():
        stack = _stack(options, tools)
        brakes = tools.brakes(stack.jobs_table)
        seen = brakes.read(options.worker)
        fields = {"worker": options.worker, "was": None if seen is None else seen.state.value, "receives": True}
        if options.dry_run:
            tools.show({**fields, "receives": seen is None}, as_json=options.json)
            return Exit.DONE
        agreed(tools, f"Let {options.worker} receive again?", yes=options.yes)
        resumed(tools, stack, options.worker, options.why, seen)
    if seen is not None and not seen.by_hand:
        tools.tell(f"{seen.by} was down: while its breaker is open, the controller pauses the worker again.")
    tools.tell("Lambda takes up to a minute to begin.")
    tools.show(fields, as_json=options.json)
    return Exit.DONE


def _paused(options: argparse.Namespace, tools: Tools, what: str) -> tuple[Deployed, dict[str, object]]:
    """Note the brake, then pause the mapping: dying in between leaves a brake that the watchdog takes off."""
    lasts = read_time(options.time)
    with explained():
        stack = _stack(options, tools)
        brakes, now = tools.brakes(stack.jobs_table), tools.clock.now()
        seen = brakes.read(options.worker)
        by = "" if options.dry_run else tools.caller()
        brake = Brake(BrakeState.PAUSED, by, options.why, now, now + lasts, by_hand=True)
        fields: dict[str, object] = {
            "worker": options.worker,
            "paused": not options.dry_run,
            "until": brake.until.isoformat(timespec="seconds"),
            "was": None if seen is None else f"{seen.state.value} by {seen.by}",
        }
        if options.dry_run:
            return stack, fields
        agreed(tools, f"Let {options.worker} receive nothing until {fields['until']}?", yes=options.yes)
        paused(tools, stack, Pausing(options.worker, brake, seen, what))
    tools.tell("Lambda takes up to a minute to stop; what runs is run to its end.")
    return stack, fields


def _wait(options: argparse.Namespace, tools: Tools, stack: Deployed) -> int:
    """Wait until nothing is in flight; give how much still is."""
    running = tools.running(stack)
    deadline = tools.clock.monotonic() + options.timeout
    most = left = running.depth(options.worker).in_flight
    columns = (TextColumn("draining"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=tools.err, transient=True) as progress:
        bar = progress.add_task("draining", total=most)
        quiet = 0
        while tools.clock.monotonic() < deadline:
            # Lambda may receive for some moments more: twice nothing is nothing.
            quiet = 0 if left else quiet + 1
            if quiet > 1:
                break
            tools.clock.sleep(LOOK_EVERY)
            left = running.depth(options.worker).in_flight
            most = max(most, left)
            progress.update(bar, total=most, completed=most - left)
    return left


def _stack(options: argparse.Namespace, tools: Tools) -> Deployed:
    stack = tools.deployed(options.stack)
    stack.workers(options.worker)
    return stack


@dataclass(frozen=True, slots=True)
class Pausing:
    """A brake that people want on a worker, in the place of what was seen there; `what` is for the audit."""

    worker: str
    brake: Brake
    seen: Brake | None
    what: str = "pause"


def paused(tools: Tools, stack: Deployed, wanted: Pausing) -> None:
    """Note the brake in the place of what was seen there, then pause the mapping; the audit is told.

    Raises:
        CommandError: somebody braked or freed the worker meanwhile, or the audit cannot be written; nothing is changed.
        Unavailable: a store or Lambda did not answer; the watchdog takes off a brake that is noted.
    """
    brakes, worker, brake = tools.brakes(stack.jobs_table), wanted.worker, wanted.brake
    with audited(tools, stack, Change(wanted.what, worker, brake.why)) as outcome:
        if not brakes.write(worker, brake, wanted.seen):
            message = "Somebody braked or freed it meanwhile: look at `tahan status`, and say it again."
            raise CommandError(message, Exit.LEFT)
        apply(brakes, tools.mappings({worker: stack.mapping_of(worker)}), worker, brake)
        outcome.counts["paused"] = 1


def resumed(tools: Tools, stack: Deployed, worker: str, why: str, seen: Brake | None) -> None:
    """Free a worker, whoever braked it; the audit is told.

    Raises:
        CommandError: the brake has changed since it was seen, or the audit cannot be written.
        Unavailable: a store or Lambda did not answer.
    """
    brakes = tools.brakes(stack.jobs_table)
    with audited(tools, stack, Change("resume", worker, why)) as outcome:
        mappings = tools.mappings({worker: stack.mapping_of(worker)})
        if seen is None:
            apply(brakes, mappings, worker, None)
        elif not free(brakes, mappings, worker, seen):
            message = "The brake has changed meanwhile: look at `tahan status`, and say it again."
            raise CommandError(message, Exit.LEFT)
        outcome.counts["resumed"] = 1


def read_time(text: str) -> timedelta:
    """How long a brake lasts.

    Raises:
        CommandError: it is no such time, or too long.
    """
    found = re.fullmatch(r"([0-9]{1,6})([smh])", text)
    lasts = timedelta(0) if found is None else timedelta(seconds=int(found[1]) * UNITS[found[2]])
    if not timedelta(0) < lasts <= LONGEST:
        message = f"--for {text}: give a time like 90s, 30m or 2h, {LONGEST // timedelta(hours=1)}h at the most."
        raise CommandError(message, Exit.REFUSED)
    return lasts
