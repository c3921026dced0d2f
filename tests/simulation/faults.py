"""What goes wrong, drawn from the seed at every call of a store, until the world is healed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shared.errors import NoAnswer, Unavailable
from tests.simulation.scheduler import Died

if TYPE_CHECKING:
    from random import Random

    from tests.simulation.scheduler import Process, Scheduler


@dataclass
class Weather:
    """How likely each fault is, in this run; drawn once, so that runs differ in kind and not only in detail."""

    dies_before: float = 0.0
    dies_after: float = 0.0
    reply_lost: float = 0.0
    not_done: float = 0.0
    freezes: float = 0.0
    slow: float = 0.0
    duplicate: float = 0.0
    undeleted: float = 0.0
    amnesia: float = 0.0
    skew: float = 0.0
    steps: float = 0.0
    stops: float = 0.0
    unstreamed: float = 0.0
    vanishes: float = 0.0
    refused: float = 0.0

    @classmethod
    def drawn(cls, random: Random) -> Weather:
        """Each fault is off in a part of the runs, and otherwise rare or frequent."""

        def chance(most: float) -> float:
            return random.choice((0.0, most / 10, most / 3, most))

        return cls(
            dies_before=chance(0.03),
            dies_after=chance(0.03),
            reply_lost=chance(0.06),
            not_done=chance(0.06),
            freezes=chance(0.02),
            slow=chance(0.1),
            duplicate=chance(0.3),
            undeleted=chance(0.3),
            amnesia=chance(0.01),
            skew=random.choice((0.0, 0.0, 2.0)),
            steps=chance(0.003),
            stops=chance(0.01),
            unstreamed=chance(0.5),
            vanishes=chance(0.1),
            refused=chance(0.7),
        )


@dataclass
class Faults:
    """Draws and counts faults."""

    scheduler: Scheduler
    random: Random
    weather: Weather
    fired: Counter[str] = field(default_factory=Counter)
    healed: bool = False

    def happens(self, name: str) -> bool:
        """Whether a fault happens now."""
        if self.healed or self.random.random() >= getattr(self.weather, name):
            return False
        self.fired[name] += 1
        return True

    def heal(self) -> None:
        """No more faults."""
        self.healed = True


class Records:
    """The store of job records as a process reaches it: looks whether a commit or a checkpoint that got no answer is there."""

    def __init__(self, store: Faulty) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, hold: Any, commit: Any, now: Any) -> None:
        try:
            self._store.commit(hold, commit, now)
        except Unavailable as error:
            try:
                view = self._store.view(hold.record)
            except Unavailable:
                raise NoAnswer(str(error), dependency="dynamodb") from error
            if view is None or view.token != hold.token or view.status is not commit.status:
                raise

    def checkpoint(self, hold: Any, checkpoint: Any, now: Any) -> None:
        try:
            self._store.checkpoint(hold, checkpoint, now)
        except Unavailable as error:
            try:
                view = self._store.view(hold.record)
            except Unavailable:
                raise NoAnswer(str(error), dependency="dynamodb") from error
            if view is None or view.token != hold.token or view.checkpoints != checkpoint.number:
                raise


class Faulty:
    """A store as one process reaches it: every call takes time, in which others run, and may go wrong."""

    def __init__(self, inner: Any, process: Process, faults: Faults, error: Exception) -> None:
        self._inner = inner
        self._process = process
        self._faults = faults
        self._error = error

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self._travel()
            faults = self._faults
            if faults.happens("dies_before"):
                self._die()
            if faults.happens("not_done"):
                raise self._error
            answer = method(*arguments, **named)
            if faults.happens("dies_after"):
                self._die()
            self._travel()
            if faults.happens("reply_lost"):
                raise self._error
            return answer

        return call

    def _travel(self) -> None:
        if self._process.is_dead:
            raise Died
        random, faults = self._faults.random, self._faults
        if faults.happens("freezes"):
            self._process.frozen_until = faults.scheduler.now + random.choice((5.0, 35.0, 300.0))
        if faults.happens("steps"):
            self._process.offset += timedelta(seconds=random.choice((-3600, -300, 300, 3600)))
        faults.scheduler.sleep(random.uniform(0.5, 3.0) if faults.happens("slow") else random.uniform(0.001, 0.02))

    def _die(self) -> None:
        self._faults.scheduler.kill(self._process)
        raise Died
