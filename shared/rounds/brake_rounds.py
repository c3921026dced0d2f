"""The rounds of the queue brake: a controller brakes and frees by the breakers, a watchdog frees what nobody renews.

The controller looks every minute at the breakers. It pauses the mapping of a worker whose dependency is down for long, lets a
little through when the breaker lets one caller look, and frees it once the breaker is closed. The watchdog lives in another
function, so that no mapping stays paused when the controller dies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from shared.errors import CacheUnavailable
from shared.failpoints import Failpoint, failpoint
from shared.rounds.brake import Brake, BrakeState, apply, free
from shared.rounds.each import try_each
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from shared.clock import Clock
    from shared.gate import Gate, Gates, GateState
    from shared.rounds.brake import Brakes, Mappings
    from shared.telemetry import Telemetry

DOWN_FOR_LONG = timedelta(minutes=2)  # short troubles cost less than braking does
LEAST_PAUSE = timedelta(minutes=2)  # of a mapping; AWS takes up to a minute to do what it is told
LONGEST_LOOK = timedelta(minutes=3)  # after which a mapping that was let go a little is paused again
HELD = timedelta(minutes=5)  # without a renewal the watchdog frees the mapping


def decide(seen: Brake | None, down: tuple[str, GateState] | None, now: datetime, pace: float = 1.0) -> Brake | None:
    """The brake that a worker should have; None for none.

    Args:
        seen: the one that it has.
        down: the dependency that is down for longest, and how its gate stands; None if none is down.
        now: the time.
        pace: factor on every duration.
    """
    if down is None:
        return None
    name, gate = down
    until = now + HELD * pace
    if seen is None or seen.state is BrakeState.FREED:
        if (gate.down_for or timedelta(0)) < DOWN_FOR_LONG * pace:
            return None
        return Brake(BrakeState.PAUSED, name, f"the breaker of {name} is open", now, until)
    held = now - seen.since
    if seen.state is BrakeState.PAUSED and held >= LEAST_PAUSE * pace and not gate.open_for:
        return replace(seen, state=BrakeState.LOOKING, since=now, until=until)
    if seen.state is BrakeState.LOOKING and (gate.open_for or held >= LONGEST_LOOK * pace):
        return replace(seen, state=BrakeState.PAUSED, since=now, until=until)
    return replace(seen, until=until)


@dataclass(frozen=True, slots=True)
class Controller:
    """Brakes workers while what they need is down.

    Attributes:
        needs: the gates of the dependencies without which a worker does nothing, by worker.
    """

    needs: Mapping[str, Sequence[Gate]]
    gates: Gates
    brakes: Brakes
    mappings: Mappings
    clock: Clock
    telemetry: Telemetry
    pace: float = 1.0

    def make_round(self) -> None:
        """Look once at every worker.

        Raises:
            Unavailable: a worker could not be braked or freed; the next round does it. The others are done.
        """
        try_each(partial(self._look, worker) for worker in self.needs)

    def _look(self, worker: str) -> None:
        seen = self.brakes.read(worker)
        if seen is not None and seen.by_hand:
            return
        try:
            down = self._down(worker)
        except CacheUnavailable:
            return  # nobody can tell: a brake that is not renewed is taken off by the watchdog
        wanted = decide(seen, down, self.clock.now(), self.pace)
        if wanted is None:
            if seen is not None and free(self.brakes, self.mappings, worker, seen):
                self._tell("queue_freed", worker, seen)
            return
        if not self.brakes.write(worker, wanted, seen):
            return  # somebody else was faster: the next round sees it
        failpoint(Failpoint.BRAKE_NOTED)
        apply(self.brakes, self.mappings, worker, wanted)
        if seen is None or seen.state is not wanted.state:
            self._tell(f"queue_{wanted.state.value}", worker, wanted)

    def _down(self, worker: str) -> tuple[str, GateState] | None:
        states = [(gate.name, self.gates.look(gate)) for gate in self.needs[worker]]
        down = [(state.down_for, name, state) for name, state in states if state.down_for is not None]
        return None if not down else max((each[1:] for each in down), key=lambda each: each[1].down_for or timedelta(0))

    def _tell(self, event: str, worker: str, brake: Brake) -> None:
        self.telemetry.count(event, NO_JOB_TYPE)
        self.telemetry.warn(event, worker=worker, dependency=brake.by)


@dataclass(frozen=True, slots=True)
class Watchdog:
    """Takes off every brake whose time is up, whoever set it."""

    workers: Iterable[str]
    brakes: Brakes
    mappings: Mappings
    clock: Clock
    telemetry: Telemetry

    def make_round(self) -> None:
        """Look once at every worker.

        Raises:
            Unavailable: a worker could not be freed; the next round does it. The others are done.
        """
        try_each(partial(self._look, worker) for worker in self.workers)

    def _look(self, worker: str) -> None:
        seen = self.brakes.read(worker)
        if seen is None or (seen.until > self.clock.now() and seen.state is not BrakeState.FREED):
            return
        if not free(self.brakes, self.mappings, worker, seen):
            return
        self.telemetry.count("brake_ended", NO_JOB_TYPE)
        self.telemetry.warn("brake_ended", worker=worker, by_hand=seen.by_hand)
