"""What people change about job records: the twin in memory, and DynamoDB as moto has it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from shared.backends.dynamodb.unended import DynamoDBUnended
from shared.backends.memory.database import MemoryDatabase
from shared.backends.memory.operator_records import MemoryOperatorRecords
from shared.backends.memory.owned_jobs import MemoryOwnedJobs
from shared.claim import Granted, StaleCopy
from shared.commit import Commit, Release
from shared.desk.operator_records import FAILURES_KEPT, TOGETHER, Ending, Reopening
from shared.errors import ClaimLost, Unavailable
from shared.job_record import LOST_AFTER, RETENTION, Hold, JobView, Replayed, Status
from shared.limits import PAYLOAD_BYTES, TRANSACTION_BYTES
from shared.message import Message
from shared.outbox import SHARDS
from shared.outcome import Failure
from tests.conformance.accepting import asked, claim_of
from tests.conformance.claims import FAILURE
from tests.conformance.claims import claim as claim_for
from tests.operated import ME
from tests.world import START, FakeClock

if TYPE_CHECKING:
    from shared.claim import Claim
    from shared.intake.acceptance import Acceptance
    from tests.aws import Database

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@dataclass
class Office:
    """A store as workers, clients, the rescue and the operator see it."""

    records: Any
    accepts: Any
    unended: Any
    owned: Any
    operator: Any
    clock: FakeClock

    def view(self, record: str) -> JobView:
        view = self.records.view(record)
        assert isinstance(view, JobView)
        return view

    def hold(self, claim: Claim) -> Hold:
        granted = self.records.claim(claim, self.clock.now())
        assert isinstance(granted, Granted)
        return granted.hold

    def dead(self, **changes: Any) -> JobView:
        """A job that died once."""
        claim = claim_for(**changes)
        self.records.bury(self.hold(claim), 1, FAILURE, START)
        return self.view(claim.record)

    def accepted(self) -> Acceptance:
        acceptance = asked()
        self.accepts.accept(acceptance, START)
        return acceptance

    def lost(self, record: str) -> bool:
        moment = START + LOST_AFTER + HOUR
        return any(view.record == record for shard in range(SHARDS) for view in self.unended.unended(shard, moment))

    def reopen(self, *seen: JobView, death: int = 1, now: Any = START) -> frozenset[str]:
        found: frozenset[str] = self.operator.reopen([Reopening(view, death, ME) for view in seen], now)
        return found


@pytest.fixture(params=["memory", "moto"])
def office(request: pytest.FixtureRequest) -> Office:
    clock = FakeClock()
    if request.param == "memory":
        database = MemoryDatabase(clock)
        operator = MemoryOperatorRecords(database, clock)
        return Office(database, database, database, MemoryOwnedJobs(database), operator, clock)
    moto: Database = request.getfixturevalue("moto_database")
    unended = DynamoDBUnended(moto.client, moto.jobs_table)
    records, accepts = moto.records(clock), moto.acceptances(clock)
    return Office(records, accepts, unended, moto.owned(clock), moto.operator(clock), clock)


def test_the_failures_of_spent_attempts_are_kept_in_order_and_one_that_was_given_back_is_not(office: Office) -> None:
    claim = claim_for(max_attempts=5)
    other = replace(FAILURE, at=START + MINUTE, reason="unknown")
    third = replace(FAILURE, at=START + HOUR)
    for number, release in enumerate(
        [Release(START, FAILURE), Release(START, third, gives_attempt_back=True), Release(START, other), Release(START)]
    ):
        office.records.release(office.hold(replace(claim, token=f"t{number}")), release, START)
    assert office.view(claim.record).failures == (FAILURE, other)
    office.records.bury(office.hold(replace(claim, token="last")), 1, third, START)
    assert office.view(claim.record).failures == (FAILURE, other, third)


def test_a_failure_that_ends_a_job_whose_attempts_are_spent_is_told_once(office: Office) -> None:
    claim = claim_for()
    hold = office.hold(claim)
    office.records.release(hold, Release(START, FAILURE), START)
    office.records.bury(hold, 1, FAILURE, START)
    assert office.view(claim.record).failures == (FAILURE,)


def test_a_dead_letters_job_is_accepted_again_with_fresh_attempts_and_says_who_did_it(office: Office) -> None:
    seen = office.dead()
    assert office.reopen(seen, now=START + HOUR) == {seen.record}
    view = office.view(seen.record)
    assert (view.status, view.attempts, view.death, view.replays) == (Status.ACCEPTED, 0, 1, 1)
    assert view.replayed == Replayed(1, START + HOUR, ME)
    assert (view.token, view.ended_at, view.first_failure, view.last_failure) == (None, None, None, None)
    assert (view.failures, view.payload) == ((FAILURE,), seen.payload)


def test_the_copy_of_a_reopened_job_is_run_and_the_copies_before_its_death_are_not(office: Office) -> None:
    claim = claim_for()
    office.records.bury(office.hold(claim), 1, FAILURE, START)
    office.reopen(office.view(claim.record))
    assert isinstance(office.records.claim(replace(claim, token="old"), START), StaleCopy)
    hold = office.hold(replace(claim, token="copy", death=1))
    assert office.view(claim.record).attempts == 1
    office.records.commit(hold, Commit(Status.COMPLETED), START)
    assert office.view(claim.record).replays == 1


def test_a_reopened_job_is_watched_by_the_rescue_and_unfinished_for_its_owner(office: Office) -> None:
    mine = office.accepted()
    office.records.bury(office.hold(replace(claim_of(mine), accepted=True)), 1, FAILURE, START)
    before = office.owned.unfinished("user-1", 1000)
    assert not office.lost(mine.record)
    assert office.reopen(office.view(mine.record)) == {mine.record}
    assert office.owned.unfinished("user-1", 1000) == before + 1
    assert office.lost(mine.record)


def test_a_job_that_nobody_heard_of_is_reopened_under_a_death_of_its_own(office: Office) -> None:
    claim = claim_for()
    office.hold(claim)
    seen = office.view(claim.record)
    assert office.reopen(seen, now=claim.until) == frozenset()  # it is held
    assert office.reopen(seen, now=claim.until + MINUTE) == {claim.record}
    view = office.view(claim.record)
    assert (view.status, view.death, view.token) == (Status.ACCEPTED, 1, None)
    with pytest.raises(ClaimLost):
        office.records.commit(Hold(claim.record, claim.token), Commit(Status.COMPLETED), START)


def test_a_reopening_that_was_interrupted_is_found_done_also_by_another_operator(office: Office) -> None:
    seen = office.dead()
    assert office.reopen(seen) == {seen.record}
    assert office.reopen(seen) == {seen.record}
    assert office.view(seen.record).replays == 1


def test_what_has_changed_since_it_was_seen_is_not_reopened_and_its_neighbours_are(office: Office) -> None:
    gone = replace(office.dead(), record="f" * 64)
    taken, fine = office.dead(), office.dead()
    changed = claim_for(taken.names["idempotency_key"], death=1, token="another")
    office.records.release(office.hold(changed), Release(START), START)
    assert office.reopen(gone, taken, fine) == {fine.record}
    assert office.view(taken.record).status is Status.RETRYING


def test_many_are_reopened_at_once(office: Office) -> None:
    seen = [office.dead() for _ in range(60)]
    assert office.reopen(*seen) == {view.record for view in seen}
    found = office.operator.views([*(view.record for view in seen), "f" * 64])
    assert {name: view.status for name, view in found.items()} == {view.record: Status.ACCEPTED for view in seen}


def test_a_reopened_job_keeps_the_last_failures_of_its_lives_before(office: Office) -> None:
    claim = claim_for(max_attempts=100)
    many = [Failure(START, f"r{number}", "e", "s") for number in range(FAILURES_KEPT + 2)]
    for number, failure in enumerate(many):
        office.records.release(office.hold(replace(claim, token=f"t{number}")), Release(START, failure), START)
    seen = office.view(claim.record)
    assert seen.failures == tuple(many)
    office.reopen(seen)
    assert office.view(claim.record).failures == tuple(many[2:])


@pytest.mark.parametrize(
    ("ending", "result"),
    [(Ending(Status.FAILED, '{"code":"discarded"}'), '{"code":"discarded"}'), (Ending(Status.CANCELLED), None)],
)
def test_a_dead_letters_job_is_ended_by_people_and_expires(office: Office, ending: Ending, result: str | None) -> None:
    seen = office.dead()
    office.operator.end(seen, ending, START + HOUR)
    view = office.view(seen.record)
    assert (view.status, view.result, view.payload, view.death) == (ending.status, result, None, 1)
    assert (view.expires, view.ended_at) == (START + HOUR + RETENTION, START + HOUR)
    with pytest.raises(ClaimLost):
        office.operator.end(seen, ending, START + 2 * HOUR)


def test_a_running_job_that_people_cancel_commits_nothing(office: Office) -> None:
    claim = claim_for()
    hold = office.hold(claim)
    office.operator.end(office.view(claim.record), Ending(Status.CANCELLED), START)
    with pytest.raises(ClaimLost):
        office.records.commit(hold, Commit(Status.COMPLETED), START)
    assert not office.lost(claim.record)


def test_a_job_of_a_dead_attempt_is_given_back_and_its_zombie_commits_nothing(office: Office) -> None:
    claim = claim_for()
    hold = office.hold(claim)
    seen = office.view(claim.record)
    with pytest.raises(ClaimLost):
        office.operator.give_back(seen, "fresh", START, although_held=False)
    office.operator.give_back(seen, "fresh", START, although_held=True)
    view = office.view(claim.record)
    assert (view.status, view.token, view.claim_until, view.not_before) == (Status.RETRYING, "fresh", None, START)
    with pytest.raises(ClaimLost):
        office.records.commit(hold, Commit(Status.COMPLETED), START)
    with pytest.raises(ClaimLost):
        office.records.release(hold, Release(START), START)
    assert office.lost(claim.record)
    assert office.hold(replace(claim, token="next")).token == "next"


def test_a_job_that_waits_is_let_run_at_once(office: Office) -> None:
    claim = claim_for()
    office.records.release(office.hold(claim), Release(START + HOUR, FAILURE), START)
    office.operator.give_back(office.view(claim.record), "fresh", START, although_held=False)
    assert office.view(claim.record).attempts == 1
    office.hold(replace(claim, token="next"))


def test_a_job_whose_attempts_are_spent_can_still_be_dead_lettered_after_it_was_given_back(office: Office) -> None:
    claim = claim_for(max_attempts=1)
    office.hold(claim)
    office.operator.give_back(office.view(claim.record), "fresh", START, although_held=True)
    spent = office.records.claim(replace(claim, token="next"), START)
    office.records.bury(spent.hold, 1, FAILURE, START)
    assert office.view(claim.record).status is Status.DEAD_LETTERED


class Busy:
    """A table that is always in somebody else's transaction."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.calls = 0

    def transact_write_items(self, **asked: Any) -> Any:
        self.calls += 1
        raise ClientError(
            {
                "Error": {"Code": "TransactionCanceledException", "Message": "x"},
                "CancellationReasons": [{"Code": "TransactionConflict"}],
            },
            "TransactWriteItems",
        )


def test_a_busy_table_is_asked_again_and_then_said_to_be_busy(moto_database: Database) -> None:
    clock = FakeClock()
    store = moto_database.operator(clock)
    busy = Busy(store.client)
    view = JobView("f" * 64, Status.DEAD_LETTERED, 1, "1:a", 1)
    with pytest.raises(Unavailable):
        replace(store, client=busy).reopen([Reopening(view, 1, ME)], START)
    assert busy.calls == 4
    assert len(clock.slept) == 3


def test_an_item_that_is_no_job_is_no_view(moto_database: Database) -> None:
    store = moto_database.operator(FakeClock())
    store.client.put_item(TableName=store.table, Item={"id": {"S": "latest/x"}, "generation": {"N": "1"}})
    assert store.views(["latest/x"]) == {}


def test_a_job_that_was_reopened_under_another_death_is_not_found_done(office: Office) -> None:
    seen = office.dead()
    office.reopen(seen)
    assert office.reopen(seen, death=2) == frozenset()


def test_a_replayed_job_that_has_begun_before_is_not_cancelled_by_its_client(office: Office) -> None:
    acceptance = office.accepted()
    office.records.bury(office.hold(claim_of(acceptance)), 1, FAILURE, START)
    office.reopen(office.view(acceptance.record))
    assert office.accepts.cancel(acceptance.record, "user-1", START).status is Status.ACCEPTED


def test_a_replayed_job_that_has_begun_before_is_not_buried_by_an_older_copy_that_cannot_be_sent(
    office: Office,
) -> None:
    acceptance = office.accepted()
    office.records.bury(office.hold(claim_of(acceptance)), 1, FAILURE, START)
    office.reopen(office.view(acceptance.record))
    older = Message("note", 1, acceptance.idempotency_key, acceptance.payload, record=acceptance.record)
    office.records.bury_unbegun(older, FAILURE, START)
    assert office.view(acceptance.record).status is Status.ACCEPTED
    assert office.lost(acceptance.record)  # if it is never sent at all the sweeper finds it


def test_a_replayed_job_that_never_began_is_cancelled_by_its_client(office: Office) -> None:
    acceptance = office.accepted()
    office.reopen(office.view(acceptance.record))
    assert office.accepts.cancel(acceptance.record, "user-1", START).status is Status.CANCELLED


class Weighing:
    """A table that notes how many bytes of payloads stand in each transaction."""

    def __init__(self, payload: str) -> None:
        self.payload = payload
        self.weights: list[int] = []

    def transact_write_items(self, **asked: Any) -> Any:
        self.weights.append(len(asked["TransactItems"]) * len(self.payload))


def test_what_is_reopened_together_fits_into_a_transaction(moto_database: Database) -> None:
    table = Weighing("x" * PAYLOAD_BYTES)
    view = JobView("", Status.DEAD_LETTERED, 1, "1:a", 1, payload=table.payload)
    seen = [Reopening(replace(view, record=f"{number:064}"), 1, ME) for number in range(TOGETHER)]
    done = replace(moto_database.operator(FakeClock()), client=table).reopen(seen, START)
    assert len(done) == TOGETHER
    assert max(table.weights) < TRANSACTION_BYTES
    small = Weighing("x")
    few = [replace(each, seen=replace(each.seen, payload="x")) for each in seen]
    replace(moto_database.operator(FakeClock()), client=small).reopen(few, START)
    assert len(small.weights) == 1
