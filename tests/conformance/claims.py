"""Claims, as the suites of every store of job records ask for them."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from shared.claim import Claim, Granted
from shared.job_record import record_id
from shared.outcome import Failure
from tests.world import START

if TYPE_CHECKING:
    from tests.conformance.conftest import Stores


fresh = itertools.count()
SOON = timedelta(seconds=30)
FAILURE = Failure(START, "transient", "TimeoutError: x", "abcdef123456", "shop")


def claim(key: str | None = None, **changes: Any) -> Claim:
    key = key or f"key-{next(fresh)}"
    values = {
        "record": record_id("system", "note", key),
        "owner": "system",
        "job_type": "note",
        "idempotency_key": key,
        "fingerprint": "1:aaaa",
        "payload": "{}",
        "version": 1,
        "token": f"token-{next(fresh)}",
        "until": START + SOON,
        "max_attempts": 3,
        "death": 0,
        **changes,
    }
    return Claim(**values)


def again(first: Claim, **changes: Any) -> Claim:
    """Another delivery of the same job."""
    return claim(first.idempotency_key, **{"until": first.until + timedelta(hours=1), **changes})


def granted(stores: Stores, asked: Claim, now: datetime = START) -> Granted:
    answer = stores.records.claim(asked, now)
    assert isinstance(answer, Granted)
    return answer
