"""Sending what the outbox holds: at least once, nothing skipped, nothing counted that was not sent.

Dying between sending and marking sends a message again, and its idempotency key makes that harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.errors import Unavailable
from shared.failpoints import Failpoint, failpoint
from shared.outbox import LONGEST_DELAY
from shared.producer import Outgoing, send_all
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from shared.clock import Clock
    from shared.outbox import Outbox, Posting
    from shared.producer import Queue
    from shared.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Relay:
    """Sends postings to the queues of their workers."""

    outbox: Outbox
    queues: Callable[[str], Queue | None]
    clock: Clock
    random: Random
    telemetry: Telemetry

    def relay(self, postings: Sequence[Posting]) -> None:
        """Send all and mark them as sent; what can never be sent is parked with its reason.

        Raises:
            Unavailable: some could not be sent now; the stream delivers the batch again.
        """
        failpoint(Failpoint.RELAY_RECEIVED)
        # The sweeper sends the others in time.
        due = [posting for posting in postings if posting.delay <= LONGEST_DELAY]
        left = 0
        for worker in dict.fromkeys(posting.worker for posting in due):
            left += self._send(worker, [posting for posting in due if posting.worker == worker])
        if left:
            message = f"{left} of {len(postings)} messages could not be sent: the stream delivers them again."
            raise Unavailable(message, dependency="sqs")

    def _send(self, worker: str, postings: Sequence[Posting]) -> int:
        """Send what is for one worker; give how many are still to be sent."""
        queue = self.queues(worker)
        if queue is None:
            for posting in postings:
                self._park(posting, f"no worker {worker!r} is deployed here")
            return 0
        messages = [
            Outgoing(posting.body, posting.attributes, posting.delay, posting.group, posting.id) for posting in postings
        ]
        report = send_all(queue, messages, self.clock, self.random)
        failpoint(Failpoint.RELAY_SENT)
        for place in report.sent:
            self.outbox.mark_sent(postings[place].id, self.clock.now())
            failpoint(Failpoint.RELAY_MARKED)
        self.telemetry.count("relayed", NO_JOB_TYPE, len(report.sent))
        for place, refusal in report.failed.items():
            if refusal.final:
                self._park(postings[place], refusal.code)
            else:
                self.telemetry.warn("not_relayed", posting=postings[place].id, worker=worker, code=refusal.code)
        return sum(not refusal.final for refusal in report.failed.values())

    def _park(self, posting: Posting, reason: str) -> None:
        self.outbox.park(posting.id, reason)
        failpoint(Failpoint.RELAY_PARKED)
        self.telemetry.count("parked", NO_JOB_TYPE)
        self.telemetry.warn("parked", posting=posting.id, worker=posting.worker, reason=reason)
