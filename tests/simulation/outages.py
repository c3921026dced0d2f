"""An outside system that is down now and then, the brake on the queue meanwhile, and what must hold of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functions.outside.payment_provider import PAYMENT_PROVIDER
from shared.backends.memory.brakes import MemoryBrakes, MemoryMappings
from shared.backends.memory.gates import MemoryGates
from shared.errors import CacheUnavailable, Unavailable
from shared.rounds.brake_rounds import Controller, Watchdog
from tests.modes import Mode
from tests.simulation.faults import Faults, Faulty, Weather
from tests.simulation.jobs import SIM_WORKER
from tests.simulation.scheduler import ProcessClock
from tests.world import START

if TYPE_CHECKING:
    from shared.clock import Clock
    from shared.job_record import JobView
    from tests.simulation.scheduler import Process
    from tests.simulation.world import World

SLOWEST = 60.0  # seconds that AWS takes to do to a mapping what it is told
NAME = SIM_WORKER.name


class Gates(MemoryGates):
    """The gates of a run; when a call was served is noted as it becomes known."""

    outages: Outages

    def leave(self, gate: Any, token: str, *, served: bool | None) -> Any:
        if served:
            self.outages.served.append(self.clock.monotonic())
        return MemoryGates.leave(self, gate, token, served=served)


class SlowMappings(MemoryMappings):
    """What the mappings of a run are told takes its time."""

    changes: list[tuple[float, int | None]]
    world: World

    def pause(self, worker: str) -> None:
        self._tell(0)

    def run(self, worker: str, concurrency: int | None = None) -> None:
        self._tell(concurrency)

    def _tell(self, number: int | None) -> None:
        delay = self.world.random.uniform(0, SLOWEST)
        self.changes.append((self.world.scheduler.now + delay, number))

    def lets(self, poller: int) -> bool:
        """Whether that poller, of three, receives now."""
        done = [number for moment, number in self.changes if moment <= self.world.scheduler.now]
        most = done[-1] if done else None
        return most is None or poller < most


class Outages:
    """Of the payment provider; and a controller, which may die for good."""

    def __init__(self, world: World) -> None:
        random = world.random
        self.world = world
        starts = [random.uniform(0, random.choice((5, 300))) for _ in range(random.choice((0, 1, 2)))]
        self.windows = [(start, start + random.choice((30.0, 300.0, 900.0))) for start in starts]
        self.controller_lives_until = random.choice((float("inf"), random.uniform(0, 1500)))
        self.gates_are_calm = random.choice((False, True))
        self.served: list[float] = []
        clock = world.history.clock
        self.gates = Gates(clock)
        self.gates.outages = self
        self.brakes = MemoryBrakes()
        self.mappings = SlowMappings()
        self.mappings.changes, self.mappings.world = [], world

    def begin(self) -> None:
        """Let the controller look."""
        self.world.spawn("controller", self._control)

    @property
    def is_down(self) -> bool:
        """Whether the provider refuses every call."""
        now = self.world.scheduler.now
        return not self.world.faults.healed and any(start <= now < end for start, end in self.windows)

    def check_up(self) -> None:
        """Return if the provider is there.

        Raises:
            Unavailable: it is not.
        """
        if self.is_down:
            self.world.faults.fired["outage"] += 1
            message = "the provider is down"
            raise Unavailable(message, dependency=PAYMENT_PROVIDER.name)

    def gates_for(self, process: Process) -> Any:
        """The gates as a process reaches them."""
        world = self.world
        faults = world.faults
        if self.gates_are_calm:
            faults = Faults(world.scheduler, world.random, Weather(), healed=True)
        if world.mode is Mode.REDIS_GONE:
            return Gone()
        return Faulty(self.gates, process, faults, CacheUnavailable())

    def watchdog(self, process: Process, clock: Clock) -> Watchdog:
        """The sweeper's part."""
        return Watchdog((NAME,), *self._ways(process), clock, self.world.telemetry)

    def spent(self, before: JobView) -> str | None:
        """What is wrong with an attempt that was spent on the provider, if anything is.

        Somebody must have been served since the job last failed there, or since this attempt began. Where clocks are off
        or gates fail nobody can know.
        """
        weather = self.world.faults.weather
        exact = (
            self.gates_are_calm and self.world.mode is not Mode.REDIS_GONE and not weather.skew and not weather.steps
        )
        if not exact:
            return None
        last = before.last_failure
        since = self.world.history.claimed_at[before.token or ""]
        if last is not None and last.dependency == PAYMENT_PROVIDER.name:
            since = (last.at - START).total_seconds()
        if any(moment > since for moment in self.served):
            return None
        return f"an attempt is spent, and since {since} the provider served nobody: {before}"

    def _control(self, here: Process) -> None:
        world = self.world
        while world.scheduler.now < self.controller_lives_until:
            world.scheduler.sleep(60.0)
            ended: list[bool] = []

            def go(process: Process, ended: list[bool] = ended) -> None:
                brakes, mappings = self._ways(process)
                needs, clock = {NAME: [PAYMENT_PROVIDER.gate]}, ProcessClock(world.scheduler, process)
                gates = self.gates_for(process)
                controller = Controller(needs, gates, brakes, mappings, clock, world.telemetry)  # type: ignore[arg-type]
                try:
                    controller.make_round()
                except Unavailable:
                    pass
                finally:
                    ended.append(True)

            world.within(here.name, go, ended)

    def _ways(self, process: Process) -> tuple[Any, Any]:
        gone = Unavailable("no answer", dependency="aws")
        faults = self.world.faults
        return Faulty(self.brakes, process, faults, gone), Faulty(self.mappings, process, faults, gone)


class Gone:
    """Gates of a Redis that is gone."""

    def enter(self, *_: Any, **__: Any) -> Any:
        raise CacheUnavailable

    leave = look = enter
