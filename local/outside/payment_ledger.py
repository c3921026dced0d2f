"""What the payment provider stand-in knows: how it treats an intent, by the intent's prefix, and every charge it made.

It counts one charge for each distinct idempotency key, as a real provider would: a client that used two keys for one
intent shows up as having charged twice.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from local.outside.server import LIMITED, UNAVAILABLE, Behaviour, Step

if TYPE_CHECKING:
    from collections.abc import Mapping


BEHAVIOURS: Mapping[str, Behaviour] = {
    "pi_ok_": Behaviour(),
    "pi_503x2_": Behaviour(first=(UNAVAILABLE, UNAVAILABLE)),
    "pi_429_": Behaviour(first=(LIMITED,)),
    "pi_lost_": Behaviour(first=(Step(answers=False),)),
    "pi_slow_": Behaviour(then=Step(delay=timedelta(milliseconds=500))),
    "pi_decline_": Behaviour(then=Step(status=402, code="card_declined")),
    "pi_kill_": Behaviour(first=(Step(kills=True),)),
}


@dataclass(frozen=True, slots=True)
class Charge:
    """Money taken. `request` is what was asked for under this key."""

    charge_id: str
    idempotency_key: str
    request: Mapping[str, str]

    def answer(self) -> dict[str, str]:
        """The charge as clients see it; `order_id` stays the client's own affair."""
        asked = {name: self.request[name] for name in ("payment_intent_id", "amount", "currency")}
        return {"charge_id": self.charge_id, **asked, "status": "captured"}


class KeyReusedError(Exception):
    """This idempotency key was used for another request."""


class Ledger:
    """All charges, and how many requests each intent has seen. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._by_key: dict[str, Charge] = {}
        self._requests: defaultdict[str, list[float]] = defaultdict(list)  # when, in monotonic seconds

    def next_step(self, intent: str) -> Step:
        """Count a request for the intent and tell how it is treated."""
        behaviour = behaviour_of(intent)
        with self._lock:
            seen = len(self._requests[intent])
            self._requests[intent].append(time.monotonic())
        return behaviour.step(seen)

    def charge(self, key: str, request: Mapping[str, str]) -> tuple[Charge, bool]:
        """Charge once for each key; the flag tells whether it happened now.

        Raises:
            KeyReusedError: the key is known with another request.
        """
        with self._lock:
            known = self._by_key.get(key)
            if known is None:
                charge = Charge(f"ch_{next(self._numbers):06d}", key, dict(request))
                self._by_key[key] = charge
                return charge, True
        if known.request != dict(request):
            raise KeyReusedError
        return known, False

    def charges_of(self, intent: str) -> list[Charge]:
        """The truth about an intent."""
        with self._lock:
            return [charge for charge in self._by_key.values() if charge.request["payment_intent_id"] == intent]

    def summary(self) -> dict[str, object]:
        """Everything, for those who check.

        `provoked` are the intents that have had all their special steps, `shortest_waits` the seconds between two
        requests for one intent.
        """
        with self._lock:
            charges = [asdict(charge) for charge in self._by_key.values()]
            requests = {intent: list(times) for intent, times in self._requests.items()}
        return {
            "charges": charges,
            "charges_by_intent": dict(Counter(charge["request"]["payment_intent_id"] for charge in charges)),
            "requests_by_intent": {intent: len(times) for intent, times in requests.items()},
            "shortest_waits": {
                intent: min(later - earlier for earlier, later in itertools.pairwise(times))
                for intent, times in requests.items()
                if len(times) > 1
            },
            "provoked": sorted(intent for intent, times in requests.items() if len(times) >= _steps(intent)),
        }


def behaviour_of(intent: str) -> Behaviour:
    """How the provider treats an intent: the table's row for its prefix, else it is charged plainly."""
    return next((behaviour for prefix, behaviour in BEHAVIOURS.items() if intent.startswith(prefix)), Behaviour())


def _steps(intent: str) -> int:
    """Requests after which everything special about the intent has happened."""
    return max(1, len(behaviour_of(intent).first))
