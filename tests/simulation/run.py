"""Runs seeds, in as many processes as there are cores; a seed that fails is told with the command that replays it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from multiprocessing import get_context
from os import cpu_count
from typing import TYPE_CHECKING

from tests.simulation.cached import CachedWorld
from tests.simulation.history import Checks
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.modes import Mode

CACHE_ALONE_EVERY = 10  # seeds: a run of the cache alone has readers and writers in far greater number


@dataclass
class Result:
    """How one seed ended: what was checked, which faults fired, and what was found, if anything."""

    seed: int
    mode: Mode
    checked: list[str] = field(default_factory=list)
    fired: Counter[str] = field(default_factory=Counter)
    found: str = ""

    @property
    def command(self) -> str:
        """Replays it."""
        return f"python -m tests.simulation --seed {self.seed} --mode {self.mode}"


def run_seed(seed: int, mode: Mode) -> Result:
    """Run one seed and check its history."""
    world = World(seed, mode)
    result = Result(seed, mode)
    try:
        world.run()
        result.checked = Checks(world).all()
        if seed % CACHE_ALONE_EVERY == 0:
            CachedWorld(seed).run()
            result.checked.append("i36_i37_cache_alone")
    except Exception as error:  # noqa: BLE001 - whatever the product raises here is a finding
        result.found = f"{type(error).__name__}: {error}"
    result.fired = world.faults.fired
    return result


def run_seeds(seeds: range, modes: tuple[Mode, ...]) -> Iterator[Result]:
    """Run all, in any order."""
    work = [(seed, modes[seed % len(modes)]) for seed in seeds]
    with get_context("spawn").Pool(cpu_count()) as pool:
        yield from pool.imap_unordered(_run, work, chunksize=8)


def _run(work: tuple[int, Mode]) -> Result:
    return run_seed(*work)
