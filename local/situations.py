"""The situations of the demo, as data: what is sent, what goes wrong meanwhile, and how it must end.

A situation's messages are the bodies of its event file, so that the demo, the tests and a call by hand run the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

EVENTS = Path(__file__).resolve().parent.parent / "events" / "payments"
AMOUNT = "30.40"
CURRENCY = "EUR"


class Trouble(StrEnum):
    """What the demo itself does to the stack while a situation runs; all else comes from the provider."""

    NONE = "none"
    WORKER_KILLED = "worker-killed"  # by the provider, which knows when the charge is made
    REDIS_STOPPED = "redis-stopped"


@dataclass(frozen=True, slots=True)
class Order:
    """An order that is in the table before anything is sent, and how it must end: its status, and its charges."""

    order_id: str
    intent: str
    ends: str = "paid"
    charges: int = 1


@dataclass(frozen=True, slots=True)
class Situation:
    """One situation.

    Attributes:
        name: of the event file, too.
        order: what it is about; None where no order exists.
        completed: messages whose job ends, well or with a business failure.
        duplicates: messages whose job another message ended.
        dead_letters: reasons, one for each message that no attempt can help.
        trouble: what the demo does meanwhile.
    """

    name: str
    order: Order | None = None
    completed: int = 1
    duplicates: int = 0
    dead_letters: tuple[str, ...] = ()
    trouble: Trouble = Trouble.NONE

    @property
    def bodies(self) -> tuple[str, ...]:
        """The messages to send, as the event file has them."""
        event = json.loads((EVENTS / f"{self.name}.json").read_text(encoding="utf-8"))
        return tuple(record["body"] for record in event["Records"])


SITUATIONS = (
    Situation("new-order", Order("order-new", "pi_ok_new")),
    Situation("same-message-three-times", Order("order-thrice", "pi_ok_thrice"), duplicates=2),
    Situation("two-jobs-one-key", Order("order-one-key", "pi_ok_one_key"), duplicates=1),
    Situation("two-jobs-one-order", Order("order-raced", "pi_ok_raced"), completed=2),
    Situation("malformed-json", completed=0, dead_letters=("malformed-json",)),
    Situation("wrong-payload", completed=0, dead_letters=("invalid-payload",)),
    Situation("unknown-order", completed=0, dead_letters=("unknown-order",)),
    Situation("declined-payment", Order("order-declined", "pi_decline_card", ends="failed", charges=0)),
    Situation("provider-503-twice", Order("order-503", "pi_503x2_busy")),
    Situation("provider-rate-limits", Order("order-429", "pi_429_hurry")),
    Situation("provider-is-slow", Order("order-slow", "pi_slow_late")),
    Situation("provider-charges-and-times-out", Order("order-lost", "pi_lost_answer")),
    Situation("worker-killed", Order("order-killed", "pi_kill_worker"), trouble=Trouble.WORKER_KILLED),
    Situation("redis-stopped", Order("order-no-redis", "pi_ok_no_redis"), trouble=Trouble.REDIS_STOPPED),
)
