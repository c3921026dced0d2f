"""The twin of SQS in memory: at least once, in any order, with visibility, receive counts, redrive and FIFO groups.

It passes the same conformance suite as the real one. Receiving and deleting, which Lambda does for the product, are here
for whoever plays Lambda.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shared.backends.sqs.attributes import dead_letter_attributes, of_strings, to_api, to_event
from shared.clock import to_millis
from shared.errors import Refused
from shared.limits import LONGEST_HIDDEN
from shared.producer import DELAY_ON_FIFO, Outgoing, standard_group

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from shared.clock import Clock
    from shared.delivery import Delivery
    from shared.desk.dead_letter_queue import Copy
    from shared.producer import NotTaken


DEDUPLICATION = timedelta(minutes=5)  # how long a FIFO queue knows what it was sent


@dataclass(slots=True)
class Kept:
    """A message on the queue. `attributes` are as the API has them."""

    id: str
    body: str
    attributes: dict[str, dict[str, Any]]
    group: str | None
    sent_at: datetime
    visible_at: float  # monotonic seconds
    receives: int = 0
    receipt: str = ""
    received_at: float = 0.0
    trace: str | None = None
    sequence: int | None = None  # on a FIFO queue

    @property
    def record(self) -> dict[str, Any]:
        """As Lambda hands it over."""
        system = {
            "ApproximateReceiveCount": str(self.receives),
            "SentTimestamp": str(to_millis(self.sent_at)),
            **({} if self.group is None else {"MessageGroupId": self.group}),
            **({} if self.trace is None else {"AWSTraceHeader": self.trace}),
            **({} if self.sequence is None else {"SequenceNumber": str(self.sequence)}),
        }
        return {
            "messageId": self.id,
            "receiptHandle": self.receipt,
            "body": self.body,
            "attributes": system,
            "messageAttributes": to_event(self.attributes),
            "eventSource": "aws:sqs",
        }


@dataclass(slots=True)
class MemoryQueue:
    """A queue and its dead-letter queue.

    Attributes:
        clock: by whose monotonic time messages are hidden.
        visibility: how long a received message stays hidden.
        max_receives: a message that was received so often is moved to the dead letters, when it would be received again.
        fifo: whether groups are kept in order, one at a time.
    """

    clock: Clock
    visibility: timedelta = timedelta(seconds=30)
    max_receives: int = 10
    fifo: bool = False
    messages: dict[str, Kept] = field(default_factory=dict)
    dead: list[Kept] = field(default_factory=list)
    _number: int = 0
    _sent_before: dict[str | None, tuple[str, float]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def send(self, batch: Sequence[Outgoing]) -> list[str | NotTaken]:
        """Take all but what a FIFO queue cannot hold back; give their ids."""
        return [DELAY_ON_FIFO if self.fifo and message.delay else self._sent(message) for message in batch]

    def receive(
        self,
        most: int = 10,
        *,
        order: Callable[[list[Kept]], object] = lambda visible: None,  # noqa: ARG005 - as they were sent
        hidden: bool = True,
    ) -> list[dict[str, Any]]:
        """Receive visible messages, as records of a Lambda event.

        Args:
            most: how many.
            order: may put them into another order, which a standard queue does not promise.
            hidden: whether they are hidden; a standard queue may deliver twice, as if they were not.
        """
        with self.lock:
            now = self.clock.monotonic()
            visible = [message for message in self.messages.values() if message.visible_at <= now]
            if not self.fifo:
                order(visible)
            taken: list[dict[str, Any]] = []
            for message in visible:
                if len(taken) == most:
                    break
                if self.fifo and self._is_behind(message, taken):
                    continue
                if message.receives >= self.max_receives:
                    self.dead.append(self.messages.pop(message.id))
                    continue
                message.receives += 1
                message.receipt = f"{message.id}/{message.receives}"
                message.received_at = now
                message.visible_at = now + self.visibility.total_seconds() if hidden else now
                taken.append(message.record)
            return taken

    def delete(self, receipt: str) -> None:
        """Delete a message; a receipt from before a later receive does nothing."""
        with self.lock:
            message = self._received(receipt)
            if message is not None:
                del self.messages[message.id]

    def hide(self, delivery: Delivery, after: timedelta) -> None:
        """Change the message's visibility, in whole seconds and never less than asked."""
        with self.lock:
            message = self._received(delivery.receipt_handle)
            now = self.clock.monotonic()
            if message is None or message.visible_at <= now:
                refusal = "The receipt is not of a message in flight."
                raise Refused(refusal)
            seconds = math.ceil(after.total_seconds())
            if now + seconds - message.received_at > LONGEST_HIDDEN.total_seconds():
                refusal = "A message is hidden for 12 hours at the most, from its receipt."
                raise Refused(refusal)
            message.visible_at = now + seconds

    def dead_letter(self, delivery: Delivery, reason: str) -> None:
        """Keep a copy with its reason among the dead letters."""
        letters: dict[str, Kept] = {}
        attributes = dead_letter_attributes(delivery, reason)
        name = self._put(letters, delivery.body, attributes, delivery.group, timedelta(0))
        with self.lock:
            letters[name].trace = delivery.trace
            self.dead.extend(letters.values())

    def take_copy(self, copy: Copy) -> str:
        """Take a copy of a dead letter; give its id."""
        message = Outgoing(copy.body, {}, group=copy.group, deduplication=copy.deduplication)
        with self.lock:
            before = self._number
            name = self._sent(message)
            if self._number != before:
                self.messages[name].attributes = to_api(copy.attributes)
                self.messages[name].trace = copy.trace
            return name

    @property
    def has_visible(self) -> bool:
        """Whether a receive would find something."""
        now = self.clock.monotonic()
        return any(message.visible_at <= now for message in self.messages.values())

    def _sent(self, message: Outgoing) -> str:
        attributes = of_strings(message.attributes)
        if not self.fifo:
            group = standard_group(message.group, message.tenant)
            return self._put(self.messages, message.body, attributes, group, message.delay)
        with self.lock:
            since = self.clock.monotonic() - DEDUPLICATION.total_seconds()
            known, sent = self._sent_before.get(message.deduplication, ("", since))
            if sent > since:
                return known
            group = message.group or message.deduplication
            name = self._put(self.messages, message.body, attributes, group, timedelta(0))
            self._sent_before[message.deduplication] = (name, self.clock.monotonic())
            return name

    def _put(
        self,
        place: dict[str, Kept],
        body: str,
        attributes: dict[str, dict[str, Any]],
        group: str | None,
        delay: timedelta,
    ) -> str:
        with self.lock:
            self._number += 1
            name = f"m{self._number}"
            visible_at = self.clock.monotonic() + delay.total_seconds()
            place[name] = Kept(name, body, attributes, group, self.clock.now(), visible_at)
            place[name].sequence = self._number if self.fifo else None
            return name

    def _received(self, receipt: str) -> Kept | None:
        message = self.messages.get(receipt.partition("/")[0])
        return message if message is not None and message.receipt == receipt else None

    def _is_behind(self, message: Kept, taken: list[dict[str, Any]]) -> bool:
        """Whether an earlier message of its group is in flight, but for those of this very receive."""
        mine = {record["messageId"] for record in taken}
        now = self.clock.monotonic()
        return any(
            other.group == message.group and other.visible_at > now and other.id not in mine
            for other in self.messages.values()
        )
