"""The outbox: messages to send, written in the transaction that decided them. The relay sends what it finds there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from shared.errors import Malformed, Refused
from shared.limits import LONGEST_DELAY, check_group, check_message
from shared.message import check_payload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from shared.message import Message

KEPT = timedelta(days=7)  # a sent item, for people who ask what was sent
LONGEST_SCHEDULE = timedelta(days=366)
# What has to wait for longer than SQS delays is sent by the sweeper this much too early, and SQS delays the rest: so the
# job begins to the second, though the sweeper comes by once a minute.
LEAD = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Posting:
    """A message to send.

    Attributes:
        id: fixed at the commit; a FIFO queue deduplicates its copies by it, elsewhere the idempotency key does.
        worker: whose queue.
        body: the message's text, as Message.body gives it.
        delay: from the commit on, at most a year. Up to 15 minutes it waits on the queue, beyond that in the outbox.
        group: MessageGroupId, where there is one.
        ordered: whether those of its group are sent in the order of their commits, one after the other.
        attributes: message attributes, all strings.
        tenant: whose turn it takes on a standard queue, where no group is named.
    """

    id: str
    worker: str
    body: str
    delay: timedelta = timedelta(0)
    group: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    ordered: bool = False
    tenant: str | None = None

    @property
    def lane(self) -> str:
        """What is behind what: the group of an ordered posting at its worker; any other is alone."""
        return f"{self.worker}/{self.group}" if self.ordered and self.group is not None else self.id


def check_schedule(message: Message, now: datetime) -> None:
    """Refuse a job for a moment until which nothing is kept.

    Raises:
        Malformed: invalid-run-at.
    """
    if message.wait(now) > LONGEST_SCHEDULE:
        raise Malformed("invalid-run-at", f"a job is kept for {LONGEST_SCHEDULE.days} days at most")


def due_at(posting: Posting, since: datetime) -> datetime:
    """When a posting is to be sent: at once, or `LEAD` before the end of a delay that is too long for SQS."""
    return since if posting.delay <= LONGEST_DELAY else since + posting.delay - LEAD


def left_of(posting: Posting, since: datetime, now: datetime) -> timedelta:
    """What is left of a posting's delay, in whole seconds as SQS takes it."""
    left = max(since + posting.delay - now, timedelta(0))
    return timedelta(seconds=math.ceil(left.total_seconds()))


def posting_of(  # noqa: PLR0913 - each is a part of the posting
    message: Message,
    name: str,
    worker: str,
    *,
    delay: timedelta = timedelta(0),
    group: str | None = None,
    ordered: bool = False,
) -> Posting:
    """Make a posting under the given name.

    Raises:
        Refused: SQS would refuse the message, its delay is too long, or it is to be in order without a group.
    """
    if ordered and (group is None or delay):
        text = "A message is in order within its group, and without a delay: give `group`, or leave `ordered` out."
        raise Refused(text)
    try:
        check_payload(message.payload)
    except Malformed as error:
        raise Refused(str(error)) from error
    body = message.body()
    check_message(body, {})
    if not timedelta(0) <= delay <= LONGEST_SCHEDULE:
        text = f"A delay of {delay}: a job is kept for {LONGEST_SCHEDULE.days} days at most."
        raise Refused(text)
    if group is not None:
        check_group(group)
    whole = timedelta(seconds=math.ceil(delay.total_seconds()))
    return Posting(name, worker, body, whole, group, ordered=ordered, tenant=message.tenant)


SHARDS = 8  # of the index of what waits, so that no partition of it is hot


@dataclass(frozen=True, slots=True)
class Overdue:
    """A posting that still waits to be sent, and since when it might have been. Its delay is what is left of it."""

    posting: Posting
    since: datetime


class Waiting(Protocol):
    """The outbox as the sweeper sees it."""

    def overdue(self, shard: int, before: datetime, now: datetime) -> Iterator[Overdue]:
        """What was to be sent before that moment and is neither sent nor parked, the oldest first, read consistently.

        Args:
            shard: 0 up to `SHARDS`.
            before: what is due only since then is left to the relay.
            now: by which the delays that are left are reckoned.

        Raises:
            Unavailable: the store did not answer.
        """
        ...


class Outbox(Protocol):
    """The outbox outside of a job's commit: what the relay notes, and messages that are sent anew."""

    def post(self, posting: Posting, now: datetime) -> None:
        """Have a message sent. Repeating it under its id changes nothing.

        Raises:
            Unavailable: the store did not answer; it may be sent.
        """
        ...

    def lane(self, name: str) -> Iterator[Posting]:
        """The ordered postings of a lane that are neither sent nor parked, in the order of their commits, read consistently.

        Raises:
            Unavailable: the store did not answer.
        """
        ...

    def park(self, posting: Posting, reason: str) -> None:
        """Keep it, with the reason why it can never be sent. Repeating it changes nothing.

        Raises:
            Unavailable: the store did not answer; it is tried once more.
        """
        ...

    def mark_sent(self, posting: Posting, now: datetime) -> None:
        """Note that it was sent; it is kept for a week. Repeating it changes nothing.

        Raises:
            Unavailable: the store did not answer; the message is sent once more.
        """
        ...
