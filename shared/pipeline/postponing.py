"""How long a delivery waits of which no attempt is spent: whether there was one or not, and spread, so that not all come back at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.limits import LONGEST_HIDDEN
from shared.outcome import Because, Postponed
from shared.worker import LONGEST_POSTPONEMENT, SHORTEST_POSTPONEMENT

if TYPE_CHECKING:
    from shared.clock import Surroundings
    from shared.delivery import Delivery
    from shared.errors import SettingsError
    from shared.telemetry import Telemetry

SHORTEST_WAIT = timedelta(milliseconds=100)


@dataclass(frozen=True, slots=True)
class Postponing:
    """Postpones deliveries of one worker."""

    pace: float
    here: Surroundings
    telemetry: Telemetry

    def postponed(self, delivery: Delivery, because: Because) -> Postponed:
        """Wait; the wait grows with the receives to a minute, and lies between half of that and all of it."""
        ceiling = min(LONGEST_POSTPONEMENT, SHORTEST_POSTPONEMENT * 2 ** min(delivery.receive_count - 1, 10))
        share = self.pace * (0.5 + self.here.random.random() / 2)
        return Postponed(timedelta(seconds=ceiling.total_seconds() * share), because)

    def later(self, delivery: Delivery, because: Because, wait: timedelta) -> Postponed:
        """Wait for what is told, and then some, as for every postponement."""
        return Postponed(within_reason(wait + self.postponed(delivery, because).after), because)

    def misconfigured(self, delivery: Delivery, error: SettingsError) -> Postponed:
        """Wait for the deploy that cures it, and say what to set: the text of such an error is advice, without values."""
        self.telemetry.warn("misconfigured", message_id=delivery.message_id, advice=str(error))
        return self.postponed(delivery, Because.MISCONFIGURED)


def within_reason(after: timedelta) -> timedelta:
    """A wait that SQS can hold, and that is no hot loop."""
    return min(max(after, SHORTEST_WAIT), LONGEST_HIDDEN - SHORTEST_WAIT)
