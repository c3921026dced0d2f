"""The end of the demo: all results, their sums, and what belongs to no situation."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from local.demo.over_http import ASKED
from local.demo.situations import SITUATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from local.demo.observation import Observation
    from local.demo.verdict import Result


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
        stray_charges: charges that no order asked for.
        is_at_rest: whether the queue is empty.
    """

    results: tuple[Result, ...]
    totals: Totals
    strangers: int
    stray_charges: int
    is_at_rest: bool
    seconds: float

    @property
    def is_ok(self) -> bool:
        """Whether everything ended as it must."""
        as_expected = all(result.is_as_expected for result in self.results)
        is_clean = self.totals.charged_twice == self.totals.lost == self.strangers == self.stray_charges == 0
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
    intents = {situation.order.intent for situation in (*SITUATIONS, *ASKED) if situation.order is not None}
    totals = Totals(
        sent=sum(account.sent for account in accounts),
        completed=sum(account.completed for account in accounts),
        duplicates=sum(account.duplicates for account in accounts),
        dead_lettered=dead_lettered,
        charged_twice=sum(len(charges) > 1 for charges in observation.charges.values()),
        lost=sum(account.lost + account.unfinished for account in accounts),
    )
    return Report(
        results=results,
        totals=totals,
        strangers=observation.dead - dead_lettered,
        stray_charges=sum(len(made) for intent, made in observation.charges.items() if intent not in intents),
        is_at_rest=observation.is_at_rest,
        seconds=seconds,
    )
