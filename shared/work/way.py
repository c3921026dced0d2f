"""An attempt's way to its dependencies, through the gate of each; and what its process remembers of those gates.

A call that is turned away costs no attempt, and neither does one that failed because the dependency fails everybody. While
Redis is gone the bounds are kept by each process for itself, or nobody calls, as the dependency declares.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.dependency import WithoutGate
from shared.errors import AlreadyCalled, Ambiguous, CacheUnavailable, NotNow, Unavailable
from shared.gate import Turned, TurnedAway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from shared.clock import Surroundings
    from shared.dependency import Dependency
    from shared.gate import Gate, Gates, Health
    from shared.outcome import Failure
    from shared.telemetry import Telemetry

PATIENCE = timedelta(seconds=1)  # of waits for a rate or for room that are spent here, and not on the queue
SOON = timedelta(seconds=1)
# A process that was told of an open breaker does not ask for as long: no claim is made in vain. It is short, since another's
# look may close the breaker before the time that was told.
BELIEVED = timedelta(seconds=15)


@dataclass(slots=True)
class Ways:
    """The ways of one process.

    Attributes:
        gates: kept together with all workers.
        own: this process's, for as long as those are gone.
        processes: among which the bounds are divided meanwhile.
    """

    gates: Gates
    own: Gates
    processes: int
    here: Surroundings
    telemetry: Telemetry
    _shut: dict[str, float] = field(default_factory=dict)  # until when, by the monotonic clock

    def shut_for(self, dependencies: Iterable[Dependency]) -> timedelta:
        """How long one of them lets nobody in, as this process was told; zero if it does not know."""
        now = self.here.clock.monotonic()
        return timedelta(seconds=max((self._shut.get(each.name, now) - now for each in dependencies), default=0.0))

    def shut(self, name: str, wait: timedelta) -> None:
        """Remember that a dependency lets nobody in."""
        self._shut[name] = self.here.clock.monotonic() + min(wait, BELIEVED).total_seconds()

    def way(self, job_type: str, failure: Failure | None) -> Way:
        """The way of one attempt of a job whose last failure was this one."""
        return Way(self, job_type, failure)


@dataclass(slots=True)
class Way:
    """The way of one attempt."""

    ways: Ways
    job_type: str
    failure: Failure | None
    _excused: set[str] = field(default_factory=set)
    _counted_once: set[str] = field(default_factory=set)  # where the attempt has asked the retry budget, and was let in

    def excuses(self, dependency: str) -> bool:
        """Whether the attempt's last failed call there says nothing about the job: the dependency fails everybody.

        So it is while the breaker is open, unless by this very call; and if of the calls that began since the job last failed
        there, or since its call began, none was served. A job that fails where others are served spends its attempts.
        """
        return dependency in self._excused

    @contextlib.contextmanager
    def through(self, dependency: Dependency, time_left: Callable[[], timedelta]) -> Iterator[None]:
        """Make one call within the block, which may raise Unavailable or Ambiguous; it may be waited for a moment first.

        Raises:
            NotNow: the dependency is not to be called now; the block was not entered.
        """
        if dependency.gate is None:
            with self._counted(dependency.name):
                yield
            return
        token = self.ways.here.tokens()
        gates, gate = self._enter(dependency, dependency.gate, token, time_left)
        begun = self.ways.here.clock.now()
        served: bool | None = None
        try:
            with self._counted(gate.name):
                yield
            served = True
            self._excused.discard(gate.name)
        except AlreadyCalled:
            raise
        except (Unavailable, Ambiguous) as error:
            if error.dependency != gate.name:
                raise
            served = False
            raise
        finally:
            health = self._leave(gates, gate, token, served=served)
            if served is False and health is not None:
                known = self.failure is not None and self.failure.dependency == gate.name
                since = self.failure.at if known and self.failure is not None else begun
                was_open = health.open_for and not health.opened
                if was_open or health.served is None or self.ways.here.clock.now() - health.served <= since:
                    self._excused.add(gate.name)

    @contextlib.contextmanager
    def _counted(self, dependency: str) -> Iterator[None]:
        """Count the call within the block, and how it failed."""
        telemetry = self.ways.telemetry
        telemetry.count("dependency_calls", self.job_type)
        try:
            yield
        except AlreadyCalled:  # earlier: nothing was sent now
            raise
        except (Unavailable, Ambiguous) as error:
            if error.dependency == dependency:
                is_sent = isinstance(error, Ambiguous)
                telemetry.count("dependency_timeouts" if is_sent else "dependency_unavailable", self.job_type)
            raise

    def _enter(
        self, dependency: Dependency, gate: Gate, token: str, time_left: Callable[[], timedelta]
    ) -> tuple[Gates, Gate]:
        """Enter, after a moment if need be; give which gate it was, to leave it again."""
        clock, is_retry = self.ways.here.clock, self.failure is not None
        if dependency.name in self._counted_once:
            # A budget of calls would never let a job through again that makes more of them than it saves up.
            gate = replace(gate, retries=None)
        patience = min(PATIENCE, max(time_left() - gate.call, timedelta(0)))
        until = clock.monotonic() + patience.total_seconds()
        gates = self.ways.gates
        while True:
            try:
                turned = gates.enter(gate, token, is_retry=is_retry, patience=patience)
            except CacheUnavailable as error:
                if dependency.without_redis is WithoutGate.POSTPONE or gates is self.ways.own:
                    message = f"{gate.name} is not called while nobody knows how it does."
                    raise NotNow(message, dependency=gate.name, after=SOON, is_open=False) from error
                gates, gate = self.ways.own, gate.shared_by(self.ways.processes)
                self.ways.telemetry.count("gate_unavailable", self.job_type)
                continue
            if isinstance(turned, timedelta):
                self._counted_once.add(dependency.name)
                if turned:
                    clock.sleep(turned.total_seconds())
                return gates, gate
            wait = turned.wait.total_seconds()
            if turned.why is not Turned.CONCURRENCY or clock.monotonic() > until - wait:
                raise self._turned_away(gate, turned)
            clock.sleep(wait)

    def _turned_away(self, gate: Gate, turned: TurnedAway) -> NotNow:
        self.ways.telemetry.count(f"turned_away_{turned.why.value}", self.job_type)
        is_open = turned.why is Turned.OPEN
        if is_open:
            self.ways.shut(gate.name, turned.wait)
        message = f"{gate.name} is not to be called now ({turned.why.value})."
        return NotNow(message, dependency=gate.name, after=turned.wait, is_open=is_open)

    def _leave(self, gates: Gates, gate: Gate, token: str, *, served: bool | None) -> Health | None:
        """Leave; how the dependency does, or None where nobody can tell."""
        try:
            health = gates.leave(gate, token, served=served)
        except CacheUnavailable:
            self.ways.telemetry.count("gate_unavailable", self.job_type)
            return None
        if health.open_for:
            self.ways.shut(gate.name, health.open_for)
        return health
