"""What a round sends, and what of it must have happened in the end."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

BEHAVIOURS = ("ok", "ok", "ok", "503x2", "lost", "slow", "decline")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One job that is asked for, by one or more messages."""

    job_type: str
    key: str
    payload: dict[str, object]
    copies: int

    @property
    def body(self) -> str:
        """The message."""
        return json.dumps({"job_type": self.job_type, "idempotency_key": self.key, "payload": self.payload})

    @property
    def intent(self) -> str:
        """Of a capture."""
        return str(self.payload.get("payment_intent_id", ""))


@dataclass
class Load:
    """Draws jobs; keeps what was asked for."""

    random: Random
    name: str
    wanted: list[Wanted] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)

    def draw(self) -> list[str]:
        """One more job: the bodies of its messages, one for each copy."""
        number = len(self.wanted) + len(self.malformed)
        key = f"{self.name}-{number}"
        kind = self.random.random()
        if kind < 0.03:
            self.malformed.append(f"no JSON, {key}")
            return self.malformed[-1:]
        copies = self.random.choice((1, 1, 1, 2, 3))
        if kind < 0.07:
            payload: dict[str, object] = {"order_id": f"absent-{key}", "payment_intent_id": "pi_ok_absent"}
            job_type = "capture-payment"
        elif kind < 0.15:
            payload, job_type = {"pot": key}, "brew"
        elif kind < 0.40:
            payload, job_type = {"barrel": f"barrel-{number % 3}", "litres": self.random.randint(1, 9)}, "pour"
        else:
            intent = f"pi_{self.random.choice(BEHAVIOURS)}_{key}"
            payload, job_type = {"order_id": key, "payment_intent_id": intent}, "capture-payment"
        self.wanted.append(Wanted(job_type, key, payload, copies))
        return [self.wanted[-1].body] * copies

    @property
    def captures(self) -> list[Wanted]:
        """Those of an order that exists."""
        return [w for w in self.wanted if w.job_type == "capture-payment" and w.payload["order_id"] == w.key]
