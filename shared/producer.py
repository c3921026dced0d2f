"""How work is put on a queue. What SQS did not take is sent again or reported, never counted as sent."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from shared.errors import Malformed, NotSent, Refused, Unavailable
from shared.failpoints import Failpoint, failpoint
from shared.job_record import SYSTEM, record_id
from shared.limits import BATCH_ENTRIES, LONGEST_DELAY, MESSAGE_BYTES, check_group, check_message, message_size
from shared.message import check_payload
from shared.trace import begun
from shared.wire.deposits import check_deposit_schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from random import Random

    from shared.clock import Clock, Tokens
    from shared.message import Message
    from shared.wire.deposits import Deposits

ROUNDS = 4
FIRST_WAIT = timedelta(milliseconds=100)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message ready to send.

    Attributes:
        body: text.
        attributes: string attributes by name.
        delay: wait on the queue, whole seconds up to 15 minutes.
        group: MessageGroupId: order on a FIFO queue, fairness on a standard one.
        tenant: whose turn it takes on a standard queue, where no group is named; a FIFO queue leaves it out.
        deduplication: MessageDeduplicationId; a standard queue has none and leaves it out.
    """

    body: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    delay: timedelta = timedelta(0)
    group: str | None = None
    deduplication: str | None = None
    tenant: str | None = None

    @property
    def size(self) -> int:
        """Bytes that SQS counts."""
        return message_size(self.body, self.attributes)


@dataclass(frozen=True, slots=True)
class NotTaken:
    """Why SQS did not take an entry; `final` means that it never will."""

    code: str
    final: bool


# A FIFO queue knows no delay of a single message. Sent without it, the job would begin too early.
DELAY_ON_FIFO = NotTaken("DelayOnFifo", final=True)


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a batch, by place in it: message ids of the sent, reasons of the others."""

    sent: Mapping[int, str]
    failed: Mapping[int, NotTaken]


class Queue(Protocol):
    """The sending side of a queue."""

    def send(self, batch: Sequence[Outgoing]) -> Sequence[str | NotTaken]:
        """Send at most ten messages of at most 1 MiB in all; give a message id or a failure for each, in order.

        Raises:
            Unavailable: no answer; each of them may have been sent.
            Refused: SQS refuses the batch as a whole.
        """
        ...


@dataclass(frozen=True, slots=True)
class Producer:
    """Sends messages to one queue.

    Attributes:
        queue: where to.
        fifo: whether it is a FIFO queue; then a group is needed, and the idempotency key deduplicates.
        deposits: where payloads go that are too large to travel; without it they are refused.
    """

    queue: Queue
    clock: Clock
    random: Random
    tokens: Tokens
    fifo: bool = False
    deposits: Deposits | None = None

    def enqueue(self, message: Message, *, delay: timedelta = timedelta(0), group: str | None = None) -> str:
        """Send one message; give SQS's message id. One with `run_at` waits on the queue as long as SQS lets it.

        Raises:
            Refused: it can never be sent as it is.
            NotSent: SQS did not take it, or did not answer; sending it again with its key is safe.
        """
        report = self.enqueue_batch([message], delay=delay, group=group)
        if 0 in report.sent:
            return report.sent[0]
        text = f"SQS did not take the message ({report.failed[0].code}): send it again with the same key."
        raise NotSent(text)

    def enqueue_batch(
        self, messages: Sequence[Message], *, delay: timedelta = timedelta(0), group: str | None = None
    ) -> Report:
        """Send many, in batches as large as SQS takes; what it reports as failed is sent again a few times.

        Raises:
            Refused: a message can never be sent as it is; none was sent.
        """
        outgoing = [self._outgoing(message, delay, group) for message in messages]
        failpoint(Failpoint.PRODUCING)
        report = send_all(self.queue, outgoing, self.clock, self.random)
        failpoint(Failpoint.PRODUCED)
        return report

    def _outgoing(self, message: Message, delay: timedelta, group: str | None) -> Outgoing:
        if not timedelta(0) <= delay <= LONGEST_DELAY:
            text = f"A delay of {delay}: SQS takes up to {LONGEST_DELAY.total_seconds():.0f} seconds."
            raise Refused(text)
        if message.run_at is not None:
            wait = timedelta(seconds=math.ceil(message.wait(self.clock.now()).total_seconds()))
            delay = max(delay, min(wait, LONGEST_DELAY))
        if self.fifo and (group is None or delay or message.run_at is not None):
            text = "A FIFO queue wants a group, and takes neither a delay nor `run_at` of single messages."
            raise Refused(text)
        if self.deposits is not None:
            message = replace(message, payload=self.deposits.fit(message.payload))
        try:
            check_payload(message.payload)
        except Malformed as error:
            text = f"{error}; or give the producer the bucket of deposits (the stack's output BucketDeposits)."
            raise Refused(text) from error
        check_deposit_schedule(message.payload, message.wait(self.clock.now()))
        stamped = message.stamped(self.tokens, self.clock.now(), lambda: begun(self.tokens))
        body = stamped.body()
        check_message(body, {})
        if group is not None:
            check_group(group)
        # By job type and key, as a hash: SQS takes 128 characters, and deduplicates a queue's job types together.
        name = record_id(SYSTEM, message.job_type, message.idempotency_key)
        return Outgoing(body, {}, delay, group, name if self.fifo else None, stamped.tenant)


def send_all(queue: Queue, messages: Sequence[Outgoing], clock: Clock, random: Random) -> Report:
    """Send all, sending again what SQS did not take; give what became of each."""
    sent: dict[int, str] = {}
    failed: dict[int, NotTaken] = {}
    waiting = list(range(len(messages)))
    for turn in range(ROUNDS):
        if turn:
            clock.sleep(FIRST_WAIT.total_seconds() * 2**turn * random.random())
        for places in _batches(waiting, lambda place: messages[place].size):
            for place, answer in zip(places, _send(queue, [messages[place] for place in places]), strict=True):
                if isinstance(answer, NotTaken):
                    failed[place] = answer
                else:
                    sent[place] = answer
                    failed.pop(place, None)
        waiting = [place for place in waiting if place in failed and not failed[place].final]
        if not waiting:
            break
    return Report(sent, failed)


def _send(queue: Queue, batch: Sequence[Outgoing]) -> Sequence[str | NotTaken]:
    try:
        return queue.send(batch)
    except Unavailable as error:
        return [NotTaken(str(error), final=False)] * len(batch)
    except Refused as error:
        if len(batch) == 1:
            return [NotTaken(str(error), final=True)]
        return [_send(queue, [message])[0] for message in batch]  # it is about one of them, perhaps


def _batches(places: Sequence[int], size: Callable[[int], int]) -> Iterator[list[int]]:
    """Group by ten and by 1 MiB, in order."""
    batch: list[int] = []
    weight = 0
    for place in places:
        if batch and (len(batch) == BATCH_ENTRIES or weight + size(place) > MESSAGE_BYTES):
            yield batch
            batch, weight = [], 0
        batch.append(place)
        weight += size(place)
    if batch:
        yield batch


def group_of(tenant: str) -> str:
    """The MessageGroupId of a tenant: its name where SQS takes it, else a hash of it."""
    try:
        check_group(tenant)
    except Refused:
        return hashlib.sha256(tenant.encode(errors="surrogatepass")).hexdigest()
    return tenant


def standard_group(group: str | None, tenant: str | None) -> str | None:
    """The MessageGroupId on a standard queue: the group that was asked for, or else that of the tenant.

    SQS hands out first what is of groups with little in flight, so one busy tenant does not hold up the others. A tenant
    decides nothing else: who may see or ask for a job is its owner's affair.
    """
    if group is not None or tenant is None:
        return group
    return group_of(tenant)
