"""What every store promises that lists and counts an owner's jobs: the twin in memory, and DynamoDB as moto has it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.memory.database import MemoryDatabase
from shared.backends.memory.owned_jobs import MemoryOwnedJobs
from shared.claim import Granted
from shared.commit import Commit, Reconciliation, Release
from shared.errors import Malformed, Unavailable
from shared.intake.owned_jobs import MOST_LISTED, Place
from shared.job_record import RETENTION, SYSTEM, Status, record_id
from shared.outcome import Failure
from tests.conformance.accepting import asked, claim_of
from tests.world import START, FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.intake.acceptance import Acceptance
    from tests.aws import Database

owners = itertools.count()
FAILURE = Failure(START, "provider-down", "ProviderDown", "capture:ProviderDown")


@dataclass
class Jobs:
    """A store that accepts, its job records, and the jobs of a fresh owner."""

    accepts: Any
    records: Any
    owned: Any
    owner: str

    def accept(self, *, minutes: int = 0) -> Acceptance:
        first = asked()
        mine = replace(first, owner=self.owner, record=record_id(self.owner, "note", first.idempotency_key))
        self.accepts.accept(mine, START + timedelta(minutes=minutes))
        return mine

    def claim(self, acceptance: Acceptance, **changes: Any) -> Granted:
        granted = self.records.claim(replace(claim_of(acceptance), accepted=True, **changes), START)
        assert isinstance(granted, Granted)
        return granted

    def unfinished(self, most: int = 100) -> int:
        return int(self.owned.unfinished(self.owner, most))

    def pages(self, limit: int) -> list[list[str]]:
        """The records of each page in turn."""
        found, after = [], None
        while True:
            page = self.owned.page(self.owner, limit, after, START)
            found.append([job.view.record for job in page.jobs])
            after = page.next
            if after is None:
                return found


@pytest.fixture(params=["memory", "moto"])
def jobs(request: pytest.FixtureRequest) -> Jobs:
    clock, owner = FakeClock(), f"owner-{next(owners)}"
    if request.param == "memory":
        database = MemoryDatabase(clock)
        return Jobs(database, database, MemoryOwnedJobs(database), owner)
    moto: Database = request.getfixturevalue("moto_database")
    return Jobs(moto.acceptances(clock), moto.records(clock), moto.owned(clock), owner)


def test_an_owners_jobs_are_listed_newest_first_page_by_page(jobs: Jobs) -> None:
    accepted = [jobs.accept(minutes=minute).record for minute in range(5)]
    newest = accepted[::-1]
    assert jobs.pages(2) == [newest[:2], newest[2:4], newest[4:]]
    assert jobs.pages(5) == [newest]  # a full last page promises no next one
    assert jobs.pages(MOST_LISTED) == [newest]


def test_jobs_accepted_at_the_same_moment_are_each_listed_once(jobs: Jobs) -> None:
    accepted = {jobs.accept().record for _ in range(7)}
    listed = [record for page in jobs.pages(3) for record in page]
    assert len(listed) == 7
    assert set(listed) == accepted


def test_a_list_tells_how_each_job_stands_now_and_when_it_was_accepted(jobs: Jobs) -> None:
    first, second = jobs.accept(minutes=1), jobs.accept(minutes=2)
    jobs.claim(first)
    page = jobs.owned.page(jobs.owner, 10, None, START)
    seen = [(job.view.record, job.view.status, job.created_at) for job in page.jobs]
    assert seen == [
        (second.record, Status.ACCEPTED, START + timedelta(minutes=2)),
        (first.record, Status.RUNNING, START + timedelta(minutes=1)),
    ]


def test_api1_a_list_and_a_count_hold_nobody_elses_jobs_and_none_of_the_systems(jobs: Jobs) -> None:
    mine = jobs.accept()
    other = replace(jobs, owner=f"{jobs.owner}-other")
    other.accept()
    alone = asked()
    assert isinstance(jobs.records.claim(claim_of(alone), START), Granted)  # from a queue, without the front door
    assert jobs.pages(10) == [[mine.record]]
    assert jobs.unfinished() == 1
    assert replace(jobs, owner=SYSTEM).pages(10) == [[]]
    assert replace(jobs, owner=SYSTEM).unfinished() == 0


def test_i7_what_has_expired_is_in_no_list(jobs: Jobs) -> None:
    gone, kept = jobs.accept(minutes=1), jobs.accept(minutes=2)
    jobs.records.commit(jobs.claim(gone).hold, Commit(Status.COMPLETED), START)
    assert len(jobs.owned.page(jobs.owner, 10, None, START + RETENTION - timedelta(seconds=1)).jobs) == 2
    page = jobs.owned.page(jobs.owner, 10, None, START + RETENTION)
    assert [job.view.record for job in page.jobs] == [kept.record]


def test_a_job_that_is_accepted_anew_is_listed_once_at_its_new_place(jobs: Jobs) -> None:
    old = jobs.accept()
    jobs.records.commit(jobs.claim(old).hold, Commit(Status.COMPLETED), START)
    other = jobs.accept(minutes=1)
    jobs.accepts.accept(replace(old, token="anew", posting=replace(old.posting, id="anew")), START + RETENTION)
    page = jobs.owned.page(jobs.owner, 10, None, START + RETENTION)
    assert [job.view.record for job in page.jobs] == [old.record, other.record]
    assert jobs.unfinished() == 2


ENDS: dict[str, Callable[[Jobs, Acceptance], None]] = {
    "completed": lambda jobs, mine: jobs.records.commit(jobs.claim(mine).hold, Commit(Status.COMPLETED), START),
    "failed": lambda jobs, mine: jobs.records.commit(jobs.claim(mine).hold, Commit(Status.FAILED, "{}"), START),
    "unknown": lambda jobs, mine: jobs.records.commit(jobs.claim(mine).hold, Commit(Status.UNKNOWN), START),
    "dead-lettered": lambda jobs, mine: jobs.records.bury(jobs.claim(mine).hold, 1, FAILURE, START),
    "cancelled": lambda jobs, mine: jobs.accepts.cancel(mine.record, jobs.owner, START),
}


@pytest.mark.parametrize("end", ENDS)
def test_i44_whatever_its_end_an_ended_job_is_not_unfinished_and_stays_listed(jobs: Jobs, end: str) -> None:
    mine, other = jobs.accept(), jobs.accept(minutes=1)
    assert jobs.unfinished() == 2
    ENDS[end](jobs, mine)
    assert jobs.unfinished() == 1
    assert jobs.pages(10) == [[other.record, mine.record]]


def test_i44_a_job_that_runs_or_will_run_again_is_unfinished(jobs: Jobs) -> None:
    mine = jobs.accept()
    granted = jobs.claim(mine)
    assert jobs.unfinished() == 1
    jobs.records.release(granted.hold, Release(START), START)
    assert jobs.unfinished() == 1


def test_what_people_open_again_is_not_counted_against_the_owner(jobs: Jobs) -> None:
    dead, unknown, judge = jobs.accept(), jobs.accept(), jobs.accept()
    ENDS["dead-lettered"](jobs, dead)
    ENDS["unknown"](jobs, unknown)
    assert jobs.claim(dead, death=1).attempt == 1
    again = Reconciliation(unknown.record, Status.RETRYING)
    jobs.records.commit(jobs.claim(judge).hold, Commit(Status.COMPLETED, reconciliations=(again,)), START)
    assert jobs.unfinished() == 0


def test_i1_a_dead_letter_that_runs_again_stays_its_owners(jobs: Jobs) -> None:
    dead = jobs.accept()
    ENDS["dead-lettered"](jobs, dead)
    jobs.claim(dead, death=1)
    view = jobs.records.view(dead.record)
    assert (view.status, view.names["owner"]) == (Status.RUNNING, jobs.owner)
    assert jobs.pages(10) == [[dead.record]]


def test_no_more_are_counted_than_asked_for(jobs: Jobs) -> None:
    for _ in range(4):
        jobs.accept()
    assert [jobs.unfinished(most) for most in (1, 3, 4, 5)] == [1, 3, 4, 4]


def test_a_place_is_read_back_by_its_owner_alone_and_only_as_it_was_written() -> None:
    place = Place(START + timedelta(microseconds=7), "a" * 64)
    text = place.written("owner")
    assert Place.read(text, "owner") == place
    for broken, owner in [
        (text, "other"),
        (text[:-1], "owner"),
        (text[:20] + ("A" if text[20] != "A" else "B") + text[21:], "owner"),
        ("", "owner"),
        ("é", "owner"),
        ("bnVsbA", "owner"),  # null
        ("W10", "owner"),  # []
        ("[" * 100_000, "owner"),
    ]:
        with pytest.raises(Malformed) as refused:
            Place.read(broken, owner)
        assert refused.value.reason == "invalid-query"


class Doubling:
    """A DynamoDB client whose index still shows a job at the place that it has left."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def query(self, **request: Any) -> Any:
        answer = self.client.query(**request)
        return {**answer, "Items": [item for item in answer["Items"] for _ in range(2)]}

    def batch_get_item(self, **request: Any) -> Any:
        return self.client.batch_get_item(**request)


def test_a_job_that_stands_in_the_index_twice_is_asked_for_and_listed_once(moto_database: Database) -> None:
    clock, owner = FakeClock(), f"owner-{next(owners)}"
    owned = moto_database.owned(clock)
    jobs = Jobs(moto_database.acceptances(clock), None, replace(owned, client=Doubling(owned.client)), owner)
    accepted = [jobs.accept(minutes=minute).record for minute in range(2)]
    assert jobs.pages(10) == [accepted[::-1]]


class Sparing:
    """A DynamoDB client that gives no more than one record at once, and none at all to begin with."""

    def __init__(self, client: Any, refusals: int) -> None:
        self.client, self.refusals, self.asked = client, refusals, 0

    def query(self, **request: Any) -> Any:
        return self.client.query(**request)

    def batch_get_item(self, RequestItems: dict[str, Any]) -> Any:  # noqa: N803 - the name that AWS has for it
        self.asked += 1
        ((table, request),) = RequestItems.items()
        keys = request["Keys"]
        given = 0 if self.asked <= self.refusals else 1
        answer: dict[str, Any] = {"Responses": {table: []}}
        if given:
            answer = self.client.batch_get_item(RequestItems={table: {**request, "Keys": keys[:given]}})
        return {**answer, "UnprocessedKeys": {table: {**request, "Keys": keys[given:]}} if keys[given:] else {}}


def test_records_that_were_not_given_are_asked_for_again_a_few_times(moto_database: Database) -> None:
    clock, owner = FakeClock(), f"owner-{next(owners)}"
    jobs = Jobs(moto_database.acceptances(clock), None, moto_database.owned(clock), owner)
    accepted = [jobs.accept(minutes=minute).record for minute in range(3)]
    sparing = Sparing(moto_database.client, 1)
    jobs.owned = replace(jobs.owned, client=sparing)
    assert jobs.pages(10) == [accepted[::-1]]
    assert (sparing.asked, len(clock.slept)) == (4, 3)
    jobs.owned = replace(jobs.owned, client=Sparing(moto_database.client, 2))
    with pytest.raises(Unavailable):
        jobs.pages(10)
