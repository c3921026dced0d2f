"""The brake on a worker's queue, put on and taken off by hand and told to the audit; for the command line and the console alike.

A brake set by hand has an end, at which the watchdog takes it off, whatever became of who set it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from ops.audit import Change, audited
from ops.exits import CommandError, Exit
from shared.rounds.brake import Brake, apply, free

if TYPE_CHECKING:
    from ops.stack.deployed import Deployed
    from ops.tools import Tools

UNITS = {"s": 1, "m": 60, "h": 3600}
USUAL = "1h"
LONGEST = timedelta(hours=24)  # after four days messages are lost: a pause must not come near


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
    with audited(tools, stack, Change(wanted.what, worker, brake.why)) as ended:
        if not brakes.write(worker, brake, wanted.seen):
            message = "Somebody braked or freed it meanwhile: look at `tahan status`, and say it again."
            raise CommandError(message, Exit.LEFT)
        apply(brakes, tools.mappings({worker: stack.mapping_of(worker)}), worker, brake)
        ended.counts["paused"] = 1


def resumed(tools: Tools, stack: Deployed, worker: str, why: str, seen: Brake | None) -> None:
    """Free a worker, whoever braked it; the audit is told.

    Raises:
        CommandError: the brake has changed since it was seen, or the audit cannot be written.
        Unavailable: a store or Lambda did not answer.
    """
    brakes = tools.brakes(stack.jobs_table)
    with audited(tools, stack, Change("resume", worker, why)) as ended:
        mappings = tools.mappings({worker: stack.mapping_of(worker)})
        if seen is None:
            apply(brakes, mappings, worker, None)
        elif not free(brakes, mappings, worker, seen):
            message = "The brake has changed meanwhile: look at `tahan status`, and say it again."
            raise CommandError(message, Exit.LEFT)
        ended.counts["resumed"] = 1


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
