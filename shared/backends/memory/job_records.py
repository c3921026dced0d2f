"""What all parts of the twin of DynamoDB share: the job records, and one lock over everything."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.job_record import LOST_AFTER
from shared.parts import STATES, Ended

if TYPE_CHECKING:
    from datetime import timedelta

    from shared.job_record import JobView


class Records(dict[str, "JobView"]):
    """Job records by their keys, with the stream of their changes as far as anybody reads it: the ends of parts."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.ends: list[Ended] = []

    def __setitem__(self, record: str, view: JobView) -> None:
        """Write a record."""
        before = self.get(record)
        super().__setitem__(record, view)
        if view.place is not None and view.status in STATES and (before is None or before.status is not view.status):
            self.ends.append(Ended(view.place, STATES[view.status]))


@dataclass(kw_only=True)
class MemoryRecords:
    """Job records by their keys."""

    records: Records = field(default_factory=Records)
    unfinished: set[str] = field(default_factory=set)  # accepted for an owner, and not ended since
    lost_after: timedelta = LOST_AFTER
    lock: threading.RLock = field(default_factory=threading.RLock)
