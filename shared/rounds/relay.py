"""Sending what the outbox holds: at least once, nothing skipped, nothing counted that was not sent.

Dying between sending and marking sends a message again, and its idempotency key makes that harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shared.delivery import ENCODING_ATTRIBUTE
from shared.errors import Unavailable
from shared.failpoints import Failpoint, failpoint
from shared.limits import LONGEST_DELAY
from shared.outcome import Failure
from shared.producer import Outgoing, send_all
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from random import Random

    from shared.clock import Clock
    from shared.message import Message
    from shared.outbox import Outbox, Posting
    from shared.producer import Queue
    from shared.telemetry import Telemetry


class AcceptedJobs(Protocol):
    """The store of job records as the relay sees it."""

    def bury_unbegun(self, message: Message, failure: Failure, now: datetime) -> None:
        """Mark an accepted job dead-lettered that never began, since its message can never be sent.

        Any other is left as it is, a replayed one too, whose copy is on its way or is missed in time; repeating it changes nothing.

        Raises:
            Unavailable: the store did not answer; it is tried again.
        """
        ...


@dataclass(frozen=True, slots=True)
class Relay:
    """Sends postings to the queues of their workers."""

    outbox: Outbox
    records: AcceptedJobs
    queues: Callable[[str], Queue | None]
    clock: Clock
    random: Random
    telemetry: Telemetry

    def relay(self, postings: Sequence[Posting], held: set[str] | None = None) -> None:
        """Send all and mark them as sent; what can never be sent is parked with its reason.

        Args:
            postings: in the order of their commits.
            held: lanes of ordered postings that wait for one of theirs; nothing of them is sent, and those are added
                that begin to wait now.

        Raises:
            Unavailable: some could not be sent now; the stream delivers the batch again.
        """
        held = set() if held is None else held
        failpoint(Failpoint.RELAY_RECEIVED)
        # The sweeper sends the others in time.
        due = [posting for posting in postings if posting.delay <= LONGEST_DELAY]
        left = 0
        for worker in dict.fromkeys(posting.worker for posting in due):
            mine = [posting for posting in due if posting.worker == worker]
            left += len(self._send(worker, [posting for posting in mine if not posting.ordered]))
            left += self._send_in_order(worker, [posting for posting in mine if posting.ordered], held)
        if left:
            message = f"{left} of {len(postings)} messages could not be sent: the stream delivers them again."
            raise Unavailable(message, dependency="queue")

    def _send_in_order(self, worker: str, postings: Sequence[Posting], held: set[str]) -> int:
        """Send the first of each lane, then the second, and so on; give how many are left behind one that waits.

        What waits before them is sent first, whoever should have sent it: so the stream and the sweeper keep one order.
        """
        lanes: dict[str, set[str]] = {}
        for posting in postings:
            lanes.setdefault(posting.lane, set()).add(posting.id)
        waiting = {name: self.outbox.lane(name) for name in lanes if name not in held}
        while waiting:
            heads = {name: head for name, found in waiting.items() if (head := next(found, None)) is not None}
            held |= {posting.lane for posting in self._send(worker, list(heads.values()))}
            for name in heads.keys() - held:
                lanes[name].discard(heads[name].id)
            waiting = {name: waiting[name] for name in heads if name not in held and lanes[name]}
        return sum(len(asked) for name, asked in lanes.items() if name in held)

    def _send(self, worker: str, postings: Sequence[Posting]) -> list[Posting]:
        """Send what is for one worker; give what is still to be sent."""
        if not postings:
            return []
        queue = self.queues(worker)
        if queue is None:
            for posting in postings:
                self._park(posting, f"no worker {worker!r} is deployed here")
            return []
        messages = [
            Outgoing(posting.body, posting.attributes, posting.delay, posting.group, posting.id, posting.tenant)
            for posting in postings
        ]
        report = send_all(queue, messages, self.clock, self.random)
        failpoint(Failpoint.RELAY_SENT)
        for place in report.sent:
            self.outbox.mark_sent(postings[place], self.clock.now())
            failpoint(Failpoint.RELAY_MARKED)
        self.telemetry.count("relayed", NO_JOB_TYPE, len(report.sent))
        for place, refusal in report.failed.items():
            if refusal.final:
                self._park(postings[place], refusal.code)
            else:
                self.telemetry.warn("not_relayed", posting=postings[place].id, worker=worker, code=refusal.code)
        return [postings[place] for place, refusal in report.failed.items() if not refusal.final]

    def _park(self, posting: Posting, reason: str) -> None:
        """Keep it with its reason. First whoever waits for its job is told: what is parked is not looked at again."""
        from shared.wire.parsing import legible  # noqa: PLC0415 - it brings pydantic, and hardly any posting is parked

        message = legible(posting.body, posting.attributes.get(ENCODING_ATTRIBUTE))
        if message is not None and message.record is not None:
            now = self.clock.now()
            failure = Failure(now, "not-sendable", reason, "not-sendable")
            self.records.bury_unbegun(message, failure, now)
            failpoint(Failpoint.RELAY_GAVE_UP)
        self.outbox.park(posting, reason)
        failpoint(Failpoint.RELAY_PARKED)
        self.telemetry.count("parked", NO_JOB_TYPE)
        self.telemetry.warn("parked", posting=posting.id, worker=posting.worker, reason=reason)
