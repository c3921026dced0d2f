"""Virtual time and a seeded scheduler: one actor runs at a time, and any other may run whenever it touches a store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from greenlet import getcurrent, greenlet

from tests.world import START

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from random import Random


class Died(BaseException):
    """The process is gone; nothing it would still have done happens."""


class Stuck(AssertionError):  # noqa: N818 - what was found
    """Something never came to rest."""


@dataclass
class Process:
    """What dies, freezes and has a clock of its own together."""

    name: str
    offset: timedelta = timedelta(0)
    is_dead: bool = False
    is_retired: bool = False
    frozen_until: float = 0.0


@dataclass(eq=False)
class Actor:
    """Something that goes on by itself."""

    name: str
    process: Process
    body: greenlet
    wakes: float = 0.0


@dataclass
class Scheduler:
    """Runs actors in an order that the seed decides."""

    random: Random
    now: float = 0.0
    actors: list[Actor] = field(default_factory=list)
    switches: int = 0
    running: dict[greenlet, Actor] = field(default_factory=dict)

    def spawn(self, name: str, process: Process, body: Callable[[], None]) -> Actor:
        """Begin an actor."""

        def run() -> None:
            try:
                body()
            except Died:
                return

        actor = Actor(name, process, greenlet(run), self.now)
        self.actors.append(actor)
        self.running[actor.body] = actor
        return actor

    def sleep(self, seconds: float) -> None:
        """Let the running actor wait; others go on."""
        me = self.current()
        me.wakes = self.now + seconds
        hub = me.body.parent
        assert hub is not None
        hub.switch()
        if me.process.is_dead:
            raise Died

    def current(self) -> Actor:
        """The running actor."""
        return self.running[getcurrent()]

    def kill(self, process: Process) -> None:
        """End a process at once, with everything in it; the caller may be part of it."""
        process.is_dead = True

    def run(self, until: Callable[[], bool], limit: float) -> None:
        """Run until the condition holds.

        Raises:
            Stuck: it does not hold by then, in virtual seconds from now.
        """
        deadline = self.now + limit
        while not until():
            alive = self.actors
            if not alive or self.now > deadline:
                message = f"not at rest at {self.now:.1f} s: {[actor.name for actor in alive]}"
                raise Stuck(message)
            now = self.now
            ready = [a for a in alive if a.wakes <= now and (a.process.frozen_until <= now or a.process.is_dead)]
            if not ready:
                self.now = min(max(a.wakes, a.process.frozen_until) for a in alive)
                continue
            actor = self.random.choice(ready)
            self.switches += 1
            actor.body.switch()
            if actor.body.dead:
                self.actors.remove(actor)
                del self.running[actor.body]

    def stop(self) -> None:
        """End every actor."""
        for actor in self.actors:
            actor.process.is_dead = True
            if actor.body:  # begun and not ended; one that never began has nothing to end
                actor.body.throw(Died)
        self.actors = []


@dataclass
class ProcessClock:
    """The clocks that a process sees: a wall clock that may be off, and one that only measures."""

    scheduler: Scheduler
    process: Process

    def now(self) -> datetime:
        return START + timedelta(seconds=self.scheduler.now) + self.process.offset

    def monotonic(self) -> float:
        return self.scheduler.now

    def sleep(self, seconds: float) -> None:
        self.scheduler.sleep(seconds)
