"""What all parts of the twin of DynamoDB share: the job records, and one lock over everything."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.job_record import LOST_AFTER

if TYPE_CHECKING:
    from datetime import timedelta

    from shared.job_record import JobView


@dataclass(kw_only=True)
class MemoryRecords:
    """Job records by their keys."""

    records: dict[str, JobView] = field(default_factory=dict)
    unfinished: set[str] = field(default_factory=set)  # accepted for an owner, and not ended since
    lost_after: timedelta = LOST_AFTER
    lock: threading.RLock = field(default_factory=threading.RLock)
