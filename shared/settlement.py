"""How an outcome is told to SQS: acknowledged, hidden for its wait and reported as failed, or dead-lettered.

The one place where a message leaves its queue. Order for a dead letter: send it, mark the record, acknowledge; dying in
between repeats a step and loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, assert_never

from shared.dead_letter import dossier
from shared.delivery import ENCODING_ATTRIBUTE
from shared.errors import ClaimLost, Refused, Unavailable
from shared.failpoints import Failpoint, failpoint
from shared.limits import LONGEST_DELAY, LONGEST_HIDDEN
from shared.outbox import LONGEST_SCHEDULE, Posting
from shared.outcome import Cancelled, Completed, DeadLettered, Duplicate, Outcome, Postponed, Retried, Unknown, Waiting
from shared.telemetry import NO_JOB_TYPE
from shared.wire.parsing import legible

if TYPE_CHECKING:
    from shared.clock import Clock
    from shared.delivery import Delivery
    from shared.job_record import Hold
    from shared.job_records import JobRecords
    from shared.message import Message
    from shared.outbox import Outbox
    from shared.telemetry import Telemetry
    from shared.worker import Worker

RECEIVES_LEFT = 3
SOON = timedelta(seconds=1)
LATER = timedelta(minutes=1)
RESERVE = timedelta(minutes=1)  # kept below SQS's 12 hours, which count from the receipt


class ReceivedFrom(Protocol):
    """The receiving side of a queue, and its dead-letter queue."""

    def hide(self, delivery: Delivery, after: timedelta) -> None:
        """Have the message come back after that time.

        Raises:
            Unavailable: it comes back after the queue's visibility timeout.
            Refused: the receipt is no longer valid.
        """
        ...

    def dead_letter(self, delivery: Delivery, reason: str) -> None:
        """Send a copy to the dead-letter queue: body and attributes unchanged, `reason` (JSON) as one more attribute.

        Raises:
            Unavailable: it may or may not be there.
            Refused: it does not fit.
        """
        ...


@dataclass(frozen=True, slots=True)
class Settlement:
    """Settles outcomes of one worker's queue."""

    worker: Worker
    queue: ReceivedFrom
    records: JobRecords
    outbox: Outbox
    clock: Clock
    telemetry: Telemetry

    def settle(self, delivery: Delivery, outcome: Outcome) -> bool:
        """Tell SQS; give whether the message is to be acknowledged."""
        match outcome:
            case Completed() | Duplicate() | Unknown() | Waiting() | Cancelled():
                return True
            case Retried(after=after) | Postponed(after=after):
                if self._is_better_sent_anew(delivery, after) and self._sent_anew(delivery, after):
                    return True
                self._hide(delivery, after)
                return False
            case DeadLettered():
                return self._dead_letter(delivery, outcome)
            case _:
                assert_never(outcome)

    def hold_back(self, delivery: Delivery) -> None:
        """Hide a message whose outcome is not known for the queue's whole visibility, which a beat may have shortened."""
        self._hide(delivery, self.worker.visibility_timeout)

    def _hide(self, delivery: Delivery, after: timedelta) -> None:
        try:
            self.queue.hide(delivery, min(max(after, timedelta(0)), LONGEST_HIDDEN - RESERVE))
            failpoint(Failpoint.HIDDEN)
        except (Unavailable, Refused) as error:
            # It comes back at the queue's own visibility timeout, later than asked, and nothing is lost.
            self.telemetry.warn("visibility_not_changed", message_id=delivery.message_id, error=str(error))

    def _is_better_sent_anew(self, delivery: Delivery, after: timedelta) -> bool:
        """Whether SQS would soon move it away for having been received too often, or would keep it hidden for long.

        What is hidden counts as in flight, of which a queue has 120,000 at the most.
        """
        nearly_taken_away = delivery.receive_count >= self.worker.max_receive_count - RECEIVES_LEFT
        return nearly_taken_away or after > LONGEST_DELAY

    def _sent_anew(self, delivery: Delivery, after: timedelta) -> bool:
        """Have a copy sent through the outbox, which is received anew; give whether it will be.

        Not on a FIFO queue, where it would lose its place; nor with attributes that are no strings, which the outbox does
        not carry. The job record keeps the copy from running before its time.
        """
        attributes = delivery.string_attributes
        if self.worker.fifo or attributes is None:
            return False
        name = f"{delivery.message_id}/{delivery.receive_count}"
        delay = min(max(after, timedelta(0)), LONGEST_SCHEDULE)
        message = self._message(delivery)
        tenant = None if message is None else message.tenant
        posting = Posting(name, self.worker.name, delivery.body, delay, delivery.group, attributes, tenant=tenant)
        try:
            self.outbox.post(posting, self.clock.now())
            failpoint(Failpoint.SENT_ANEW)
        except (Unavailable, Refused):
            return False  # it may be sent all the same: two copies are one job
        self.telemetry.count("sent_anew", NO_JOB_TYPE)
        return True

    @staticmethod
    def _message(delivery: Delivery) -> Message | None:
        return legible(delivery.body, delivery.text_attribute(ENCODING_ATTRIBUTE))

    def _dead_letter(self, delivery: Delivery, outcome: DeadLettered) -> bool:
        try:
            self._demand_still_held(outcome.hold)
            self.queue.dead_letter(delivery, dossier(delivery, outcome))
            failpoint(Failpoint.DEAD_LETTER_SENT)
            if outcome.hold is not None:
                self.records.bury(outcome.hold, outcome.death, outcome.failure, self.clock.now())
                failpoint(Failpoint.BURIED)
            elif (message := self._message(delivery)) is not None and message.record is not None:
                # No attempt of it ever began, and whoever waits for the job it names is told.
                self.records.bury_unbegun(message, outcome.failure, self.clock.now())
        except ClaimLost:
            # The job has ended or was taken over. This message comes back and is told so; it may have to invalidate.
            self._hide(delivery, SOON)
            return False
        except (Unavailable, Refused) as error:
            # Not acknowledged: it is dead-lettered again when it comes back, in the end by SQS's own redrive.
            self.telemetry.warn("dead_letter_not_sent", message_id=delivery.message_id, error=str(error))
            self._hide(delivery, LATER)
            return False
        return True

    def _demand_still_held(self, hold: Hold | None) -> None:
        """Return if the job's last attempt is this one, and has not ended it after all (its commit's reply was lost).

        Raises:
            ClaimLost: it is not, or has.
            Unavailable: nobody knows.
        """
        if hold is None:
            return
        view = self.records.view(hold.record)
        if view is None or view.token != hold.token or view.ended:
            message = "The job has ended, or another attempt took it over."
            raise ClaimLost(message)
