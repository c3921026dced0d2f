"""What a run of the discrete form is given beside the model, and what it has seen."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.capacity import quotas


@dataclass(frozen=True, slots=True)
class Timing:
    """What an invocation costs beside its jobs, in seconds.

    Attributes:
        poll: from a free invocation to the start of its batch.
        idle: between two looks of an idle poller; AWS's wait with the queue, and are told at once.
        rest: from the last job's end to the end of the invocation, and what follows before the next poll.
        each: of that, for each message (its deletion).
        cold: of an invocation that finds no environment.
        postponed: share of the jobs that fail once; they wait in flight for `retry` seconds.
        retry: see there.
    """

    poll: float = quotas.POLL.value
    idle: float = 0
    rest: float = 0
    each: float = 0
    cold: float = quotas.COLD_START.value
    postponed: float = 0
    retry: float = 10


AWS = Timing()


@dataclass(slots=True)
class Seen:
    """What happened, in seconds and jobs.

    Attributes:
        latencies: from arrival to commit, in the order of commits.
        ended: when each of these commits was.
        oldest: age of the oldest message that waits, at each tick.
        busy: concurrent invocations, summed over time: seconds of invocations.
        batches: invocations.
        environments: that were made, each by a cold start.
        in_flight: the most messages that were in flight.
        drained: the last moment at which the queue ran empty.
        behind: seconds that the relay is behind at the end.
    """

    latencies: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    oldest: list[float] = field(default_factory=list)
    busy: float = 0
    batches: int = 0
    environments: int = 0
    in_flight: int = 0
    drained: float = 0
    behind: float = 0

    def throughput(self, since: float, until: float) -> float:
        """Jobs a second that ended in an interval."""
        return sum(since <= each < until for each in self.ended) / (until - since)

    def latency(self, share: float, since: float = 0) -> float:
        """The latency below which this share of the jobs was that ended after a moment, in seconds."""
        found = sorted(latency for latency, ended in zip(self.latencies, self.ended, strict=True) if ended >= since)
        return found[min(int(share * len(found)), len(found) - 1)]

    @property
    def batch(self) -> float:
        """Jobs of a batch in the mean."""
        return len(self.ended) / self.batches if self.batches else 0
