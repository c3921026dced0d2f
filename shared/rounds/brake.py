"""The queue brake: while a dependency is down for long, the mapping of a worker that does nothing without it stands still.

Whatever is done to a mapping is noted first, with an end. Rounds do it by the breakers (see shared/rounds/brake_rounds.py), and
operators by hand. Control-plane calls take effect within a minute or so, and nothing here rests on when they do: a message
that is received all the same is postponed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from shared.failpoints import Failpoint, failpoint

if TYPE_CHECKING:
    from datetime import datetime

LEAST_CONCURRENCY = 2  # the least that Lambda lets a mapping have


class BrakeState(StrEnum):
    """How a mapping is braked."""

    PAUSED = "paused"
    LOOKING = "looking"  # the least concurrency, so that one caller may look whether the dependency is back
    FREED = "freed"  # somebody is about to take it off


@dataclass(frozen=True, slots=True)
class Brake:
    """A brake on a worker's mapping.

    Attributes:
        by: who set it; the controller by the name of the dependency that is down.
        why: for people.
        since: when it came into this state.
        until: when the watchdog takes it off.
        by_hand: whether an operator set it; then the controller leaves it alone.
    """

    state: BrakeState
    by: str
    why: str
    since: datetime
    until: datetime
    by_hand: bool = False


class Brakes(Protocol):
    """Where it is kept which workers are braked."""

    def read(self, worker: str) -> Brake | None:
        """The brake of a worker, read consistently; None if there is none. It may have ended by now.

        Raises:
            Unavailable: no answer.
        """
        ...

    def write(self, worker: str, brake: Brake | None, seen: Brake | None) -> bool:
        """Put a brake in the place of what was seen there, or take it off; False if it is another by now.

        Raises:
            Unavailable: it may be done; doing it again changes nothing.
        """
        ...


class Mappings(Protocol):
    """The event source mappings of workers. Each call may be repeated; it takes effect within a minute or so."""

    def pause(self, worker: str) -> None:
        """Receive nothing any more; what was received is run to its end.

        Raises:
            Unavailable: it may be paused.
        """
        ...

    def run(self, worker: str, concurrency: int | None = None) -> None:
        """Receive again, so many batches at one time; None: as many as the worker declares.

        Raises:
            Unavailable: it may run.
        """
        ...


def apply(brakes: Brakes, mappings: Mappings, worker: str, brake: Brake | None) -> None:
    """Do to the mapping what the brake says that was just noted, and anew if another is noted by then.

    Of several who act at once the last to act so sees what holds, and no mapping stays as another's note wanted it.

    Raises:
        Unavailable: it may be done.
    """
    while True:
        state = _state_of(brake)
        if state is BrakeState.PAUSED:
            mappings.pause(worker)
        else:
            mappings.run(worker, None if state is BrakeState.FREED else LEAST_CONCURRENCY)
        noted = brakes.read(worker)
        if _state_of(noted) is state:
            return
        if noted is None and brake is not None:  # Lambda may refuse what follows so soon: then the watchdog does it
            freed = replace(brake, state=BrakeState.FREED)
            if brakes.write(worker, freed, None):
                free(brakes, mappings, worker, freed)
                return
            noted = brakes.read(worker)
        brake = noted


def free(brakes: Brakes, mappings: Mappings, worker: str, seen: Brake) -> bool:
    """Free the mapping, and only then forget why it was braked: dying in between repeats a step.

    That it is about to be free is noted first, for whoever pauses it in between by the brake that was seen. False if it is
    braked anew by now; then it is as that brake says.

    Raises:
        Unavailable: it may be done.
    """
    freed = replace(seen, state=BrakeState.FREED)
    if brakes.write(worker, freed, seen):
        failpoint(Failpoint.BRAKE_NOTED)
        mappings.run(worker)
        failpoint(Failpoint.BRAKE_FREED)
        if brakes.write(worker, None, freed):
            return True
    apply(brakes, mappings, worker, brakes.read(worker))
    return False


def _state_of(brake: Brake | None) -> BrakeState:
    return BrakeState.FREED if brake is None else brake.state
