"""What runs in a stack, as the operator looks at it: depths of queues, mappings, rates, breakers, locks. It changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from shared.worker import Worker

COUNTED = ("succeeded", "retried", "postponed", "dead_lettered")


@dataclass(frozen=True, slots=True)
class Depth:
    """How many messages a worker's queues hold."""

    waiting: int
    in_flight: int
    delayed: int
    dead: int


@dataclass(frozen=True, slots=True)
class Receiving:
    """A worker's event source mapping: its state as Lambda has it, and how many batches it runs at one time at the most."""

    state: str
    concurrency: int | None


@dataclass(frozen=True, slots=True)
class Ringing:
    """An alarm of a stack.

    Attributes:
        state: OK, ALARM or INSUFFICIENT_DATA.
        description: what it says of itself: its urgency, a sentence, its runbook.
        since: when it came into its state; None where nobody says.
        told: CloudWatch's reason for the state.
    """

    name: str
    state: str
    description: str = ""
    since: datetime | None = None
    told: str = ""


class Running(Protocol):
    """Looks at one stack."""

    def depth(self, worker: str) -> Depth:
        """How many messages there are, as SQS guesses.

        Raises:
            Unavailable: no answer.
        """
        ...

    def receiving(self, worker: str) -> Receiving:
        """How its mapping stands.

        Raises:
            Unavailable: no answer.
        """
        ...

    def measured(self, workers: Sequence[Worker], now: datetime) -> Mapping[str, Mapping[str, float]]:
        """By worker: `age`, in seconds, of the oldest message, and how much of each of COUNTED in the last five minutes.

        What was not measured is left out.

        Raises:
            Unavailable: no answer.
        """
        ...

    def edges(self, now: datetime) -> Mapping[str, float]:
        """How much the front door accepted and refused and the outbox relayed, swept and parked in the last five minutes, by metric.

        What was not measured is left out.

        Raises:
            Unavailable: no answer.
        """
        ...

    def alarms(self) -> Sequence[Ringing]:
        """The alarms of the stack that tell somebody, or are parts of such.

        Raises:
            Unavailable: no answer.
        """
        ...

    def weights(self, function: str) -> Mapping[str, float]:
        """The shares that other versions than the alias's own have of a function's invocations; none when nothing moves.

        Raises:
            Unavailable: no answer.
        """
        ...

    def ask_lookout(self, question: Mapping[str, object]) -> dict[str, Any]:
        """What the lookout answers.

        Raises:
            Unavailable: it, or the cache, does not answer.
        """
        ...
