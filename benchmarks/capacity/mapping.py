"""Lambda's event source mapping for SQS: how many batches it runs at one time, since when messages wait.

It begins with five invocations and adds five a second while messages are left; provisioned pollers begin with ten for each
that is kept. (Lambda developer guide, "Configuring scaling behavior for SQS event source mappings".)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.capacity import quotas

if TYPE_CHECKING:
    from benchmarks.capacity.deployment import Deployment

MINUTE, TEN_SECONDS = 60, 10


@dataclass(frozen=True, slots=True)
class Scaling:
    """How the concurrency of a mapping grows.

    Attributes:
        first: invocations at one time when messages appear.
        added: more of them for each second in which messages wait.
        most: and no more than that.
    """

    first: float
    added: float
    most: float

    def after(self, waiting: float) -> int:
        """Invocations at one time, after so many seconds in which messages waited."""
        return int(min(self.most, self.first + self.added * waiting))

    def until(self, concurrency: float) -> float:
        """Seconds in which messages must wait until it has grown so far; infinite where it never does."""
        if concurrency <= self.first:
            return 0
        return (concurrency - self.first) / self.added if concurrency <= self.most else float("inf")


def scaling_of(deployment: Deployment) -> Scaling:
    """How a deployed mapping scales, as far as concurrency is left for its function."""
    pollers = deployment.pollers
    if pollers is None:
        own = deployment.max_concurrency or quotas.MOST_INVOCATIONS.value
        first, added = quotas.FIRST_INVOCATIONS.value, quotas.ADDED_INVOCATIONS.value
    else:
        own, first = (quotas.POLLER_INVOCATIONS.value * each for each in (pollers.most, pollers.least))
        added = min(quotas.PROVISIONED_ADDED.value, quotas.NEW_ENVIRONMENTS.value * MINUTE / TEN_SECONDS)
    most = min(own, deployment.account, deployment.reserved or deployment.account)
    return Scaling(min(first, most), added / MINUTE, most)
