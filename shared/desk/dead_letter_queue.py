"""A worker's dead-letter queue as the operator's desk works on it: look, send copies to the worker's queue, delete by receipt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from shared.delivery import Delivery
    from shared.producer import NotTaken


@dataclass(frozen=True, slots=True)
class Copy:
    """A message to send to the worker's queue in place of its dead letter.

    Attributes:
        body: unchanged.
        attributes: as Lambda hands them over, of every type.
        group: MessageGroupId, or None.
        trace: X-Ray header, or None.
        deduplication: what a FIFO queue knows it by; a standard one leaves it out.
    """

    body: str
    attributes: Mapping[str, Mapping[str, Any]]
    group: str | None
    trace: str | None
    deduplication: str


@dataclass(frozen=True, slots=True)
class Redrive:
    """A task of AWS's own that moves everything.

    Attributes:
        handle: by which it is cancelled; None where AWS does not tell it.
        moved: so far, as far as AWS knows.
        of: how many there were.
    """

    handle: str | None
    moved: int
    of: int


class DeadLetterQueue(Protocol):
    """A dead-letter queue, and the queue that its letters came from."""

    @property
    def fifo(self) -> bool:
        """Whether they are FIFO queues: letters of a group are received in order, and behind those that are hidden none."""
        ...

    def receive(self, hidden: timedelta) -> Sequence[Delivery]:
        """Receive at most ten letters with all their attributes, and hide them from others that long; none if there are none.

        Raises:
            Unavailable: no answer; what was received comes back by itself.
        """
        ...

    def give_back(self, letters: Sequence[Delivery]) -> None:
        """Let others see letters at once. What cannot be given back comes back by itself.

        Raises:
            Unavailable: no answer.
        """
        ...

    def send(self, copies: Sequence[Copy]) -> Sequence[str | NotTaken]:
        """Send at most ten copies of at most 1 MiB in all; give a message id or a failure for each, in order.

        Raises:
            Unavailable: no answer; each of them may have been sent.
            Refused: SQS refuses them as a whole; none was sent.
        """
        ...

    def delete(self, letters: Sequence[Delivery]) -> frozenset[str]:
        """Delete at most ten letters by their receipts; give the message ids of those that SQS says are deleted.

        Raises:
            Unavailable: no answer; each of them may be deleted.
        """
        ...

    def depth(self) -> int:
        """About how many letters there are, hidden ones included.

        Raises:
            Unavailable: no answer.
        """
        ...

    def redrive(self) -> Redrive | None:
        """The task of AWS's own that moves the letters at this moment; None if there is none, or such tasks are not known here.

        Raises:
            Unavailable: no answer.
        """
        ...

    def cancel(self, redrive: Redrive) -> None:
        """Stop that task; what it has moved stays moved.

        Raises:
            Unavailable: no answer.
        """
        ...
