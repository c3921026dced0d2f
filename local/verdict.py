"""Compares what was seen with what a situation promises. Every count is taken from an observation, none is assumed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from local.situations import Trouble

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from local.observation import DeadLetter, Observation
    from local.situations import Situation

ENDED = frozenset({"completed", "failed"})


@dataclass(frozen=True, slots=True)
class Account:
    """Where the messages of a situation have got to; `lost` are nowhere, `jobs` the states of their jobs.

    A message is a dead letter if the dead-letter queue has it, completed if it is the first whose job has ended, a
    duplicate if another message was the first. While its job has not ended it is unfinished as long as the queue holds
    messages, and lost when the queue is empty.
    """

    sent: int = 0
    completed: int = 0
    duplicates: int = 0
    dead_letters: tuple[str | None, ...] = ()
    unfinished: int = 0
    lost: int = 0
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """How a situation ended, or stands."""

    name: str
    expected: dict[str, object]
    seen: dict[str, object]
    account: Account

    @property
    def is_as_expected(self) -> bool:
        """Whether it ended as it must."""
        return self.expected == self.seen


def account_for(sent: Sequence[str], observation: Observation) -> Account:
    """Find each sent message in what was seen."""
    dead = Counter(sent) & Counter(letter.body for letter in observation.dead_letters)
    living = Counter(sent) - dead
    completed = duplicates = open_messages = 0
    ended: set[str] = set()
    for body in living.elements():
        key = key_of(body)
        if key is None or observation.jobs.get(key) not in ENDED:
            open_messages += 1
        elif key in ended:
            duplicates += 1
        else:
            ended.add(key)
            completed += 1
    return Account(
        sent=len(sent),
        completed=completed,
        duplicates=duplicates,
        dead_letters=tuple(letter.reason for letter in _matching(dead, observation.dead_letters)),
        unfinished=0 if observation.is_at_rest else open_messages,
        lost=open_messages if observation.is_at_rest else 0,
        jobs=tuple(
            observation.jobs[key] for key in dict.fromkeys(map(key_of, sent)) if key and key in observation.jobs
        ),
    )


def judge(situation: Situation, sent: Sequence[str], observation: Observation, *, is_troubled: bool) -> Result:
    """Compare one situation with what was seen; `is_troubled` tells whether the demo did its part of the harm."""
    account = account_for(sent, observation)
    order = situation.order
    expected: dict[str, object] = {
        "sent": len(situation.bodies),
        "completed": situation.completed,
        "duplicates": situation.duplicates,
        "dead_letters": list(situation.dead_letters),
        "lost": 0,
    }
    seen: dict[str, object] = {
        "sent": account.sent,
        "completed": account.completed,
        "duplicates": account.duplicates,
        "dead_letters": list(account.dead_letters),
        "lost": account.lost,
    }
    if order is not None:
        expected |= {"order": order.ends, "charges": order.charges, "provoked": True}
        seen |= {
            "order": observation.orders.get(order.order_id),
            "charges": observation.charges.get(order.intent, 0),
            "provoked": order.intent in observation.provoked and is_troubled,
        }
    if situation.trouble is Trouble.WORKER_KILLED:
        expected["killed"] = 1
        seen["killed"] = observation.killed
    return Result(situation.name, expected, seen, account)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all situations."""

    sent: int
    completed: int
    duplicates: int
    dead_lettered: int
    charged_twice: int
    lost: int


@dataclass(frozen=True, slots=True)
class Report:
    """The end of the demo.

    Attributes:
        strangers: dead letters that nobody sent.
        is_at_rest: whether the queue is empty.
    """

    results: tuple[Result, ...]
    totals: Totals
    strangers: int
    is_at_rest: bool
    seconds: float

    @property
    def is_ok(self) -> bool:
        """Whether everything ended as it must."""
        as_expected = all(result.is_as_expected for result in self.results)
        is_clean = self.totals.charged_twice == self.totals.lost == self.strangers == 0
        return as_expected and is_clean and self.is_at_rest

    def as_json(self) -> str:
        """One line for programs."""
        situations = [
            {"name": result.name, "expected": result.expected, "seen": result.seen, "ok": result.is_as_expected}
            for result in self.results
        ]
        whole = {
            "situations": situations,
            "totals": asdict(self.totals),
            "ok": self.is_ok,
            "seconds": round(self.seconds, 1),
        }
        return json.dumps(whole)


def report(results: Iterable[Result], observation: Observation, seconds: float) -> Report:
    """Sum up."""
    results = tuple(results)
    accounts = [result.account for result in results]
    dead_lettered = sum(len(account.dead_letters) for account in accounts)
    totals = Totals(
        sent=sum(account.sent for account in accounts),
        completed=sum(account.completed for account in accounts),
        duplicates=sum(account.duplicates for account in accounts),
        dead_lettered=dead_lettered,
        charged_twice=sum(count > 1 for count in observation.charges.values()),
        lost=sum(account.lost + account.unfinished for account in accounts),
    )
    return Report(results, totals, observation.dead - dead_lettered, observation.is_at_rest, seconds)


def key_of(body: str) -> str | None:
    """The idempotency key in a message's body; None if it cannot be read."""
    try:
        return str(json.loads(body)["idempotency_key"])
    except (ValueError, KeyError, TypeError):
        return None


def _matching(dead: Counter[str], letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    left = dead.copy()
    found = []
    for letter in letters:
        if left[letter.body] > 0:
            left[letter.body] -= 1
            found.append(letter)
    return found
