"""How many jobs an owner may have that have not ended: a store that accepts no more, around the one that accepts.

The count comes from an index that is a moment behind, so requests at the same time may pass it together; how many those can be,
the owner's rate bounds. What was accepted before is answered again, however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.errors import TahanError

if TYPE_CHECKING:
    from datetime import datetime

    from shared.intake.acceptance import Acceptance, Acceptances, AcceptsJobs
    from shared.intake.owned_jobs import OwnedJobs
    from shared.job_record import JobView
    from shared.job_records import JobRecords


class OverQuota(TahanError):  # noqa: N818 - a refusal, nothing erred
    """The owner has as many jobs under way as it may have: ask again when some have ended. Nothing was written."""


@dataclass(frozen=True, slots=True)
class WithinQuota:
    """Accepts jobs for owners that have fewer than `most` unfinished ones.

    It costs one read for each job that is accepted, and another only where the quota is used up.
    """

    accepts: AcceptsJobs
    records: JobRecords
    jobs: OwnedJobs
    most: int

    def accept(self, acceptance: Acceptance, now: datetime) -> Acceptances:
        """Accept the job, or find what was accepted before.

        Raises:
            OverQuota: the job is a new one, and the owner has too many.
            Unavailable: the store did not answer; as without a quota.
        """
        if self.jobs.unfinished(acceptance.owner, self.most) >= self.most and not self._is_known(acceptance):
            message = f"The owner has {self.most} jobs that have not ended."
            raise OverQuota(message)
        return self.accepts.accept(acceptance, now)

    def generation(self, base: str) -> int:
        """The latest generation of a key; reading it needs no room."""
        return self.accepts.generation(base)

    def cancel(self, record: str, owner: str, now: datetime) -> JobView | None:
        """Cancel the owner's job; it makes room."""
        return self.accepts.cancel(record, owner, now)

    def _is_known(self, acceptance: Acceptance) -> bool:
        return self.records.view(acceptance.record) is not None
