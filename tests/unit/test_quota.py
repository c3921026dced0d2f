"""The quota: a new job is refused while its owner has too many unfinished ones, and what was accepted is answered again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from shared.backends.memory.database import MemoryDatabase
from shared.backends.memory.owned_jobs import MemoryOwnedJobs
from shared.errors import StoreUnavailable, Unavailable
from shared.intake.acceptance import Accepted, OtherPayload, Replayed
from shared.intake.quota import OverQuota, WithinQuota
from shared.job_record import record_id
from tests.conformance.accepting import again, asked
from tests.world import START, FakeClock


@dataclass
class Counting:
    """What is asked of the store, by name."""

    inner: Any
    calls: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        def counted(*arguments: Any) -> Any:
            self.calls.append(name)
            return getattr(self.inner, name)(*arguments)

        return counted


@dataclass
class Quota:
    """A store that takes two unfinished jobs of an owner."""

    database: MemoryDatabase = field(default_factory=lambda: MemoryDatabase(FakeClock()))

    def __post_init__(self) -> None:
        self.jobs: Any = Counting(MemoryOwnedJobs(self.database))
        self.records: Any = Counting(self.database)
        self.store = WithinQuota(self.database, self.records, self.jobs, 2)

    @property
    def reads(self) -> list[str]:
        return [*self.jobs.calls, *self.records.calls]


def test_i44_over_the_quota_a_new_job_is_refused_before_anything_is_written() -> None:
    quota = Quota()
    for _ in range(2):
        assert isinstance(quota.store.accept(asked(), START), Accepted)
    refused = asked()
    with pytest.raises(OverQuota):
        quota.store.accept(refused, START)
    assert quota.database.view(refused.record) is None
    assert len(quota.database.outbox) == 2


def test_i2_over_the_quota_what_was_accepted_is_answered_again() -> None:
    quota = Quota()
    first = asked()
    quota.store.accept(first, START)
    quota.store.accept(asked(), START)
    assert isinstance(quota.store.accept(again(first), START), Replayed)
    assert isinstance(quota.store.accept(again(first, fingerprint="1:other"), START), OtherPayload)


def test_an_end_makes_room() -> None:
    quota = Quota()
    first, second = asked(), asked()
    quota.store.accept(first, START)
    quota.store.accept(second, START)
    quota.store.cancel(first.record, "user-1", START)
    assert isinstance(quota.store.accept(asked(), START), Accepted)


def test_i43_one_owner_takes_no_room_from_another() -> None:
    quota = Quota()
    for _ in range(2):
        quota.store.accept(asked(), START)
    other = asked(owner="user-2", record=record_id("user-2", "note", "k"))
    assert isinstance(quota.store.accept(other, START), Accepted)


def test_an_accepted_job_costs_one_read_and_a_refused_one_two() -> None:
    quota = Quota()
    quota.store.accept(asked(), START)
    assert quota.reads == ["unfinished"]
    quota.store.accept(asked(), START)
    quota.jobs.calls.clear()
    with pytest.raises(OverQuota):
        quota.store.accept(asked(), START)
    assert quota.reads == ["unfinished", "view"]


def test_i44_while_nobody_can_count_nothing_is_accepted() -> None:
    quota = Quota()

    def unanswered(*_: object) -> int:
        message = "busy"
        raise StoreUnavailable(message)

    quota.jobs.unfinished = unanswered
    with pytest.raises(Unavailable):
        quota.store.accept(asked(), START)
    assert quota.database.outbox == {}
