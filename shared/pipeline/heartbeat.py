"""The heartbeat of one long job: prolongs its claim and hides its message, each a few beats ahead.

Its first beat comes right after the receipt. From then on a crash is repaired in seconds; whoever dies before it leaves the
message to the queue's own visibility timeout, which is long.

It stops at the job's deadline, where it is refused, and at SQS's 12 hours from the receipt. A job whose heart has
stopped is told before its next step.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from shared.errors import ClaimLost, LeaseLost, Refused, Unavailable
from shared.failpoints import Failpoint, failpoint
from shared.limits import LONGEST_HIDDEN
from shared.pipeline.keeper import IDLE

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from shared.clock import Clock
    from shared.delivery import Delivery
    from shared.job_record import Hold
    from shared.telemetry import Telemetry

BEATS_AHEAD = 3  # so that two beats may fail
SHORTEST_WAIT = 0.05  # seconds
LAST_BEAT = 1.0  # seconds: how long a beat that is on its way is waited for
LOOK_EVERY = 0.01  # seconds, while it is


class Prolongs(Protocol):
    """What a heartbeat asks of the store of job records."""

    def prolong(self, hold: Hold, until: datetime, now: datetime) -> None:
        """Move the claim's deadline.

        Raises:
            ClaimLost: the job is no longer held.
            Unavailable: the store did not answer.
        """
        ...


class Hides(Protocol):
    """What it asks of the queue."""

    def hide(self, delivery: Delivery, after: timedelta) -> None:
        """Have the message come back after that time.

        Raises:
            Unavailable: no answer.
            Refused: the receipt is no longer valid, or its 12 hours are over.
        """
        ...


@dataclass(slots=True, eq=False)
class Heartbeat:
    """Keeps one delivery of a long job from its receipt, and its claim once there is one.

    Attributes:
        beat: time from one beat to the next; claim and message are kept `BEATS_AHEAD` of them.
        hold: the claim, from when it is granted.
        deadline: when the handler must have returned; nothing is prolonged after it.
        lost: set when it cannot go on.
        stopped: no beat begins any more.
    """

    delivery: Delivery
    beat: timedelta
    records: Prolongs
    queue: Hides
    clock: Clock
    telemetry: Telemetry
    hold: Hold | None = None
    deadline: datetime | None = None
    lost: threading.Event = field(default_factory=threading.Event)
    stopped: bool = False
    _received: float = field(init=False)
    _due: float = field(init=False)
    _asked: tuple[float, datetime] = field(init=False)
    _ends: tuple[float, datetime] = field(init=False)
    _claim_is_lost: bool = False
    _is_beating: bool = False
    _is_hidden: bool = False  # by a beat, and no longer for as long as the queue has it

    def __post_init__(self) -> None:
        """Count from now: the message has just been received."""
        self._received = self._due = self.clock.monotonic()
        self._asked = self._received, self.clock.now()
        self._ends = self._ahead_of(*self._asked)

    @property
    def ahead(self) -> timedelta:
        """How far ahead claim and message are kept."""
        return BEATS_AHEAD * self.beat

    def ask(self) -> timedelta:
        """The claim is about to be asked for, for the time given here; it counts from now, not from the answer."""
        self._asked = self.clock.monotonic(), self.clock.now()
        return self.ahead

    def begin(self, hold: Hold, deadline: datetime) -> None:
        """The claim is granted that was asked for."""
        self._ends = self._ahead_of(*self._asked)
        self.deadline = deadline
        self.hold = hold

    def stop(self) -> None:
        """Begin no beat any more, and wait a moment for one that is on its way: it would overwrite what settlement says."""
        self.stopped = True
        ends = self.clock.monotonic() + LAST_BEAT
        while self._is_beating and self.clock.monotonic() < ends:
            self.clock.sleep(LOOK_EVERY)

    def check(self) -> None:
        """Return while the heart beats.

        Raises:
            ClaimLost: another attempt has the job.
            LeaseLost: the message may be given to another.
        """
        if self.hold is not None and self._is_over() and not self._is_past_deadline():
            self.lost.set()
        if self._claim_is_lost:
            message = "Another attempt took the job over while this one worked."
            raise ClaimLost(message)
        if self.lost.is_set():
            message = "The heartbeat could not go on: the message may come back while this attempt works."
            raise LeaseLost(message)

    def due_in(self) -> float:
        """Seconds until the next beat."""
        return self._due - self.clock.monotonic()

    def renew(self) -> float:
        """Beat if it is time to; give the seconds until it is again."""
        sent, sent_at = self.clock.monotonic(), self.clock.now()
        if sent < self._due:
            return self._due - sent
        if self._is_past_deadline():
            return IDLE  # the claim and the message's wait run out by themselves
        if sent - self._received > (LONGEST_HIDDEN - self.ahead).total_seconds():
            return self._lose("limit")
        hold = self.hold
        self._is_beating = True  # before the look at `stopped`, as `stop` looks here after having set that
        try:
            if not self._prolong(hold):
                return IDLE
        except ClaimLost:
            self._claim_is_lost = True
            return self._lose("claim")
        except Refused:
            return self._lose("message")
        except Unavailable:
            if self._is_over():
                return self._lose("no-answer")
            self._due = sent + max(SHORTEST_WAIT, self.beat.total_seconds() / 4)
            return self._due - sent
        finally:
            self._is_beating = False
        if self.hold is hold:  # a claim that was granted meanwhile has an end of its own, which this beat did not move
            self._ends = self._ahead_of(sent, sent_at)
        self._due = sent + self.beat.total_seconds()
        return self.beat.total_seconds()

    def _prolong(self, hold: Hold | None) -> bool:
        """Prolong claim and message; give whether it could: settlement may decide now when the message comes back.

        The claim first: a copy that comes back early finds the job held. At the first beat the message, also where the claim was
        quicker: until it is hidden once it is the queue's for long, and whoever died would leave it there.
        """
        steps = (self._hold_on, self._hide) if self._is_hidden else (self._hide, self._hold_on)
        for step in steps:
            if self._must_end():
                return False
            step(hold)
        return True

    def _hold_on(self, hold: Hold | None) -> None:
        if hold is not None:
            now = self.clock.now()
            self.records.prolong(hold, now + self.ahead, now)
            failpoint(Failpoint.BEAT_CLAIM)

    def _hide(self, hold: Hold | None) -> None:
        del hold
        self.queue.hide(self.delivery, self.ahead)
        self._is_hidden = True
        failpoint(Failpoint.BEAT_MESSAGE)

    def _lose(self, what: str) -> float:
        self.lost.set()
        if not self.stopped:  # the end of the job itself is no loss
            self.telemetry.warn("heartbeat_stopped", message_id=self.delivery.message_id, because=what)
        return IDLE

    def _must_end(self) -> bool:
        return self.stopped or self.lost.is_set()

    def _ahead_of(self, moment: float, at: datetime) -> tuple[float, datetime]:
        return moment + self.ahead.total_seconds(), at + self.ahead

    def _is_over(self) -> bool:
        """By the wall clock, too: a frozen machine's monotonic clock may stand still."""
        ends, ends_at = self._ends
        return self.clock.monotonic() >= ends or self.clock.now() >= ends_at

    def _is_past_deadline(self) -> bool:
        return self.deadline is not None and self.clock.now() >= self.deadline
