"""The model in its discrete form: each message, batch and job in virtual time, seeded.

A message waits on the queue until one of the mapping's concurrent invocations is free. Its batch is what waits then, up to
the batch size; the jobs of a batch run on the threads of their invocation, pass everything that bounds a rate, and end each
by itself; the invocation ends with its last job, and only then takes the next batch. What throttles makes jobs wait their
turn: refusals and retries of throttled calls are not drawn.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.capacity import quotas
from benchmarks.capacity.limits import Kind, limits_of
from benchmarks.capacity.mapping import scaling_of
from benchmarks.capacity.seen import AWS, Seen, Timing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from benchmarks.capacity.deployment import Deployment
    from benchmarks.capacity.limits import Limit
    from benchmarks.capacity.shape import Shape

TICK = 1.0  # seconds between two looks at the queue, at which the mapping grows


@dataclass(slots=True)
class Bound:
    """Something that lets so many jobs through a second, and after a rest some at once (generic cell rate algorithm)."""

    limit: Limit
    due: float = -math.inf  # when the last one would have come, had all come evenly

    def pass_(self, now: float) -> float:
        """When a job that comes now is let through."""
        through = max(now, self.due - self.limit.burst)
        self.due = max(self.due, now) + 1 / self.limit.after(now)
        return through


@dataclass(slots=True)
class Batch:
    """Jobs of one invocation that wait for a thread, and how many have not ended."""

    waiting: deque[float]
    left: int
    size: int
    began: float


class Simulation:
    """One run. `opens` is when the consumers begin: before it is an outage."""

    def __init__(
        self, shape: Shape, deployment: Deployment, random: Random, *, timing: Timing = AWS, opens: float = 0
    ) -> None:
        self.seen = Seen()
        self._shape, self._deployment, self._random, self._timing, self._opens = (
            shape,
            deployment,
            random,
            timing,
            opens,
        )
        limits = limits_of(shape, deployment)
        self._bounds = [Bound(limit) for limit in limits if limit.kind is Kind.RATE]
        self._before = [Bound(limit) for limit in limits if limit.kind in {Kind.DOOR, Kind.BEFORE}]
        self._relay = [Bound(limit) for limit in limits if limit.kind is Kind.BEHIND]
        self._scaling = scaling_of(deployment)
        self._agenda: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = itertools.count()
        self._queue: deque[float] = deque()
        self._busy = self._looking = self._running = self._in_flight = (
            0  # invocations, of them still empty, and full; messages
        )
        self._pressed = 0.0

    def run(self, arrivals: Iterable[float], seconds: float) -> Seen:
        """Let jobs arrive, and look for so many seconds, or until all is done where `seconds` is infinite."""
        coming = iter(arrivals)
        self._come(0, coming, None)
        self._at(self._opens, self._tick)
        while self._agenda:
            now, _, act, arguments = heapq.heappop(self._agenda)
            if now > seconds:
                break
            act(now, *arguments)
        return self.seen

    def _at(self, moment: float, act: Callable[..., None], *arguments: object) -> None:
        heapq.heappush(self._agenda, (moment, next(self._numbers), act, arguments))

    def _come(self, now: float, coming: Any, arrived: float | None) -> None:  # noqa: ANN401 - an iterator of moments
        if arrived is not None:
            sent = now
            for bound in self._before:
                sent = bound.pass_(sent)
            self._at(sent, self._queued, arrived)
        following = next(coming, None)
        if following is not None:
            self._at(following, self._come, coming, following)

    def _queued(self, now: float, arrived: float) -> None:
        self._queue.append(arrived)
        self._take(now)

    def _tick(self, now: float) -> None:
        """The mapping looks: while messages wait, it grows."""
        self.seen.oldest.append(now - self._queue[0] if self._queue else 0)
        if self._queue:
            self._pressed += TICK
        self._take(now)
        if self._agenda or self._queue or self._in_flight:
            self._at(now + TICK, self._tick)

    def _take(self, now: float) -> None:
        """Let invocations that are free begin."""
        if now < self._opens:
            return
        waits = len(self._queue) - self._looking * self._deployment.batch_size  # those that look already take theirs
        while waits > 0 and self._busy < self._scaling.after(self._pressed):
            self._busy += 1
            self._looking += 1
            waits -= self._deployment.batch_size
            self._at(now + self._random.random() * self._timing.idle, self._poll)

    def _poll(self, now: float) -> None:
        """A free invocation takes what waits, if its window is over or its batch is full."""
        size = min(len(self._queue), self._deployment.batch_size, int(quotas.IN_FLIGHT.value) - self._in_flight)
        if size <= 0:
            self._busy -= 1
            self._looking -= 1
            return
        if size < self._deployment.batch_size and (left := self._queue[0] + self._deployment.window - now) > 0:
            self._at(now + left, self._poll)
            return
        taken = deque(self._queue.popleft() for _ in range(size))
        if not self._queue:
            self.seen.drained = now
        self._looking -= 1
        self._running += 1
        self._in_flight += size
        self.seen.in_flight = max(self.seen.in_flight, self._in_flight)
        self.seen.batches += 1
        start = now + self._timing.poll
        if self._running > self.seen.environments:
            self.seen.environments += 1
            start += self._timing.cold
        batch = Batch(taken, size, size, now)
        for _ in range(min(self._deployment.threads, size)):
            self._at(start, self._begin, batch)

    def _begin(self, now: float, batch: Batch) -> None:
        """A thread begins its next job, or has none."""
        if not batch.waiting:
            return
        arrived = batch.waiting.popleft()
        passed = now
        for bound in self._bounds:
            passed = bound.pass_(passed)
        self._at(passed + self._shape.time.draw(self._random), self._commit, batch, arrived)

    def _commit(self, now: float, batch: Batch, arrived: float) -> None:
        """A job ends; with the last one of its batch its invocation ends."""
        if self._timing.postponed and self._random.random() < self._timing.postponed:
            self._at(now + self._timing.retry, self._come_back, arrived)
        else:
            self.seen.latencies.append(now - arrived)
            self.seen.ended.append(now)
            self._in_flight -= 1
            for relay in self._relay:
                self.seen.behind = relay.pass_(now) - now
        self._begin(now, batch)
        batch.left -= 1
        if not batch.left:
            end = now + self._timing.rest + self._timing.each * batch.size
            self._at(end, self._end, batch)

    def _end(self, now: float, batch: Batch) -> None:
        """An invocation is free again, and polls at once."""
        self.seen.busy += now - batch.began
        self._busy -= 1
        self._running -= 1
        self._take(now)

    def _come_back(self, now: float, arrived: float) -> None:
        """A message is visible again."""
        self._in_flight -= 1
        self._queue.append(arrived)
        self._take(now)
