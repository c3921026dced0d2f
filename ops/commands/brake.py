"""`tahan pause|resume|drain WORKER`: the brake on a worker's queue, by hand. Messages wait; nothing is lost.

A brake set by hand has an end, at which the watchdog takes it off, whatever became of who set it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ops.commands.agreement import agreed
from ops.commands.words import command, may_change
from ops.exits import Exit
from ops.explained import explained
from ops.stack.brake import USUAL, Pausing, paused, read_time, resumed
from ops.tables import text_of
from shared.rounds.brake import Brake, BrakeState

if TYPE_CHECKING:
    import argparse

    from ops.commands.words import Commands
    from ops.stack.deployed import Deployed
    from ops.tools import Tools

LOOK_EVERY = 2.0


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the three commands."""
    about = "let a worker receive nothing more for a while"
    pause = command(commands, everywhere, "pause", about, run_pause)
    about = "pause a worker, and wait until nothing of it runs"
    drain = command(commands, everywhere, "drain", about, run_drain)
    resume = command(commands, everywhere, "resume", "let a worker receive again", run_resume)
    for parser in (pause, drain, resume):
        parser.add_argument("worker", metavar="WORKER")
        may_change(parser, "for the audit, and for whoever finds it paused")
    for parser in (pause, drain):
        parser.add_argument(
            "--for", dest="time", default=USUAL, metavar="TIME", help=f"like 90s, 30m or 2h; by default {USUAL}"
        )
    drain.add_argument("--timeout", type=int, default=1800, metavar="S", help="seconds to wait, by default 1800")


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
            "until": text_of(brake.until),
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
