"""Requests as the front door accepts them, for every store that accepts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from shared.claim import Claim
from shared.intake.acceptance import Acceptance
from shared.job_record import record_id
from shared.outbox import SHARDS, Posting
from tests.world import START

fresh = itertools.count()
LATER = START + timedelta(hours=1)


@dataclass
class Doors:
    """A store that accepts, its job records, and its outbox."""

    accepts: Any
    records: Any
    outbox: Any

    def postings(self) -> list[Posting]:
        return [each.posting for shard in range(SHARDS) for each in self.outbox.overdue(shard, LATER, LATER)]


def asked(key: str | None = None, **changes: Any) -> Acceptance:
    key = key or f"door-{next(fresh)}"
    record = record_id("user-1", "note", key)
    token = f"request-{next(fresh)}"
    values = {
        "record": record,
        "owner": "user-1",
        "job_type": "note",
        "idempotency_key": key,
        "fingerprint": "1:aaaa",
        "payload": '{"thing":"a"}',
        "version": 1,
        "token": token,
        "posting": Posting(token, "notes", "{}"),
        **changes,
    }
    return Acceptance(**values)


def again(first: Acceptance, **changes: Any) -> Acceptance:
    """Another request with the same key."""
    return asked(first.idempotency_key, **changes)


def claim_of(acceptance: Acceptance) -> Claim:
    return Claim(
        record=acceptance.record,
        owner="system",
        job_type=acceptance.job_type,
        idempotency_key=acceptance.idempotency_key,
        fingerprint=acceptance.fingerprint,
        payload=acceptance.payload,
        version=acceptance.version,
        token=f"attempt-{next(fresh)}",
        until=START + timedelta(seconds=30),
        max_attempts=3,
        death=0,
    )
