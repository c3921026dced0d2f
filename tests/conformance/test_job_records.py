"""What every store of job records promises."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyItemAlreadyExistsError

from shared.claim import Ended, HeldByOther, KeyReused, Spent, StaleCopy, TooEarly
from shared.commit import Commit, Reconciliation, Release
from shared.errors import ClaimLost, Conflict
from shared.item import Create, Delete, Replace, Unchanged, Write
from shared.job_record import Hold, Status
from shared.outbox import Posting
from shared.outcome import Failure
from shared.tag import Tag, Version
from tests.conformance.claims import FAILURE, SOON, again, claim, fresh, granted
from tests.world import START, THINGS, FakeClock

if TYPE_CHECKING:
    from tests.aws import Database
    from tests.conformance.conftest import Stores


def test_the_first_claim_is_granted_and_counts_an_attempt(stores: Stores) -> None:
    first = claim()
    assert granted(stores, first).attempt == 1
    view = stores.records.view(first.record)
    assert (view.status, view.attempts, view.token) == (Status.RUNNING, 1, first.token)
    assert view.claim_until == first.until
    assert view.names["idempotency_key"] == first.idempotency_key
    assert view.expires is None


def test_a_repeated_claim_of_one_token_is_the_same_attempt(stores: Stores) -> None:
    first = claim()
    granted(stores, first)
    assert granted(stores, first).attempt == 1


def test_a_held_job_is_refused_until_its_deadline_and_taken_over_after_it(stores: Stores) -> None:
    first = claim()
    granted(stores, first)
    assert stores.records.claim(again(first), START) == HeldByOther(first.until)
    assert stores.records.claim(again(first), first.until) == HeldByOther(first.until)
    assert granted(stores, again(first), first.until + timedelta(milliseconds=1)).attempt == 2


def test_ide_12_a_take_over_loses_against_a_completion(stores: Stores) -> None:
    first = claim()
    hold = granted(stores, first).hold
    stores.records.commit(hold, Commit(Status.COMPLETED, '{"by":1}', (Tag("t"),)), START)
    answer = stores.records.claim(again(first), first.until + SOON)
    assert answer == Ended(Status.COMPLETED, (Tag("t"),))


def test_i15_a_zombie_neither_completes_nor_releases_nor_buries_what_another_took_over(stores: Stores) -> None:
    first = claim()
    zombie = granted(stores, first).hold
    later = first.until + SOON
    winner = granted(stores, again(first), later).hold
    with pytest.raises(ClaimLost):
        stores.records.commit(zombie, Commit(Status.COMPLETED, '"zombie"'), later)
    with pytest.raises(ClaimLost):
        stores.records.release(zombie, Release(later), later)
    with pytest.raises(ClaimLost):
        stores.records.bury(zombie, 1, FAILURE, later)
    stores.records.commit(winner, Commit(Status.COMPLETED, '"winner"'), later)
    assert stores.records.view(first.record).result == '"winner"'
    with pytest.raises(ClaimLost):
        stores.records.commit(zombie, Commit(Status.COMPLETED, '"zombie"'), later)
    with pytest.raises(ClaimLost):
        stores.records.release(zombie, Release(later), later)
    assert stores.records.view(first.record).status is Status.COMPLETED


def test_a_repeated_commit_of_one_attempt_is_recognised(stores: Stores) -> None:
    hold = granted(stores, claim()).hold
    thing = f"thing-{next(fresh)}"
    commit = Commit(Status.COMPLETED, writes=(Create(THINGS, (thing,), {"id": thing}),))
    stores.records.commit(hold, commit, START)
    stores.records.commit(hold, commit, START)
    assert stores.items.read(THINGS, (thing,)).version == 1


def test_a_released_job_waits_and_keeps_its_failures_and_attempts(stores: Stores) -> None:
    first = claim()
    hold = granted(stores, first).hold
    stores.records.release(hold, Release(START + SOON, FAILURE), START)
    stores.records.release(hold, Release(START + SOON, FAILURE), START)  # the reply was lost
    assert stores.records.claim(again(first), START) == TooEarly(START + SOON)
    second = granted(stores, again(first), START + SOON)
    assert (second.attempt, second.view.first_failure) == (2, FAILURE)
    other = Failure(START + SOON, "unknown", "KeyError: y", "123456abcdef")
    stores.records.release(second.hold, Release(START + SOON, other), START + SOON)
    view = stores.records.view(first.record)
    assert (view.first_failure, view.last_failure) == (FAILURE, other)


def test_an_attempt_given_back_is_not_counted(stores: Stores) -> None:
    first = claim()
    stores.records.release(granted(stores, first).hold, Release(START, gives_attempt_back=True), START)
    assert stores.records.view(first.record).attempts == 0
    assert granted(stores, again(first)).attempt == 1


def test_no_attempt_beyond_the_last_is_granted(stores: Stores) -> None:
    first = claim(max_attempts=1)
    hold = granted(stores, first).hold
    stores.records.release(hold, Release(START, FAILURE), START)
    answer = stores.records.claim(again(first, max_attempts=1), START)
    assert answer == Spent(hold, 1, FAILURE, FAILURE)
    stores.records.bury(hold, 1, FAILURE, START)
    stores.records.bury(hold, 1, FAILURE, START)  # the reply was lost
    view = stores.records.view(first.record)
    assert (view.status, view.death) == (Status.DEAD_LETTERED, 1)


def test_a_dead_letter_is_reopened_only_by_the_copy_of_its_death(stores: Stores) -> None:
    first = claim()
    stores.records.bury(granted(stores, first).hold, 1, FAILURE, START)
    assert stores.records.claim(again(first), START) == StaleCopy(Status.DEAD_LETTERED)
    reopened = granted(stores, again(first, death=1))
    assert (reopened.attempt, reopened.view.first_failure) == (1, None)
    assert stores.records.claim(again(first), START) == StaleCopy(Status.RUNNING)


def test_a_stale_copy_is_not_granted_the_attempts_of_a_replayed_job(stores: Stores) -> None:
    first = claim()
    stores.records.bury(granted(stores, first).hold, 1, FAILURE, START)
    reopened = granted(stores, again(first, death=1))
    stores.records.release(reopened.hold, Release(START, FAILURE), START)
    assert stores.records.claim(again(first), START) == StaleCopy(Status.RETRYING)
    assert granted(stores, again(first, death=1)).attempt == 2


def test_a_key_with_another_payload_gets_no_attempt_of_a_waiting_job(stores: Stores) -> None:
    first = claim()
    stores.records.release(granted(stores, first).hold, Release(START, FAILURE), START)
    assert stores.records.claim(again(first, fingerprint="1:bbbb"), START) == KeyReused()


def test_a_key_with_another_payload_is_told_apart_within_one_schema_version(stores: Stores) -> None:
    first = claim()
    granted(stores, first)
    assert stores.records.claim(again(first, fingerprint="1:bbbb"), START) == KeyReused()
    assert stores.records.claim(again(first, fingerprint="2:bbbb"), START) == HeldByOther(first.until)
    assert stores.records.claim(again(first, fingerprint="1>2:bbbb"), START) == HeldByOther(first.until)
    assert granted(stores, again(first, fingerprint="1>2:bbbb"), first.until + SOON).attempt == 2


def test_ide_13_an_expired_record_is_absent_and_its_job_begins_anew(stores: Stores) -> None:
    first = claim()
    stores.records.commit(granted(stores, first).hold, Commit(Status.COMPLETED, '"old"', (Tag("t"),)), START)
    expires = stores.records.view(first.record).expires
    assert expires == START + timedelta(days=30)
    just_before = expires - timedelta(seconds=1)
    assert isinstance(stores.records.claim(again(first, fingerprint="1:bbbb"), just_before), KeyReused)
    new = again(first, fingerprint="1:bbbb", until=expires + SOON)
    assert granted(stores, new, expires).attempt == 1
    view = stores.records.view(first.record)
    assert (view.result, view.tags, view.expires, view.fingerprint) == (None, (), None, "1:bbbb")


def test_a_commit_writes_all_or_nothing(stores: Stores) -> None:
    name = f"thing-{next(fresh)}"
    setup = granted(stores, claim()).hold
    stores.records.commit(setup, Commit(Status.COMPLETED, writes=(Create(THINGS, (name,), {"id": name}),)), START)
    hold = granted(stores, claim()).hold
    other = f"thing-{next(fresh)}"
    writes = (
        Create(THINGS, (other,), {"id": other}),
        Replace(THINGS, (name,), {"id": name, "text": "y"}, 7, frozenset({"text"})),
    )
    posting = Posting(f"posting-{next(fresh)}", "notes", "{}")
    with pytest.raises(Conflict):
        stores.records.commit(hold, Commit(Status.COMPLETED, writes=writes, postings=(posting,)), START)
    assert stores.items.read(THINGS, (other,)) is None
    assert stores.items.read(THINGS, (name,)).version == 1
    assert stores.records.view(hold.record).status is Status.RUNNING


@pytest.mark.parametrize("kind", ["create", "replace", "delete", "unchanged", "absent"])
def test_every_write_carries_its_condition(stores: Stores, kind: str) -> None:
    name = f"thing-{next(fresh)}"
    setup = granted(stores, claim()).hold
    stores.records.commit(setup, Commit(Status.COMPLETED, writes=(Create(THINGS, (name,), {"id": name}),)), START)
    writes: dict[str, Write] = {
        "create": Create(THINGS, (name,), {"id": name}),
        "replace": Replace(THINGS, (name,), {"id": name}, 2, frozenset()),
        "delete": Delete(THINGS, (name,), 2, START),
        "unchanged": Unchanged(THINGS, (name,), 2),
        "absent": Unchanged(THINGS, (name,), None),
    }
    hold = granted(stores, claim()).hold
    with pytest.raises(Conflict):
        stores.records.commit(hold, Commit(Status.COMPLETED, writes=(writes[kind],)), START)


def test_versions_go_on_behind_a_deletion_so_that_nothing_old_fits_again(stores: Stores) -> None:
    name = f"thing-{next(fresh)}"

    def commit(*writes: Any) -> None:
        stores.records.commit(granted(stores, claim()).hold, Commit(Status.COMPLETED, writes=writes), START)

    commit(Create(THINGS, (name,), {"id": name, "text": "one"}))
    commit(Delete(THINGS, (name,), 1, START + timedelta(days=30)))
    stored = stores.items.read(THINGS, (name,))
    assert (stored.deleted, stored.version) == (True, 2)
    with pytest.raises(Conflict):
        commit(Unchanged(THINGS, (name,), None))
    commit(Create(THINGS, (name,), {"id": name, "text": "two"}))
    stored = stores.items.read(THINGS, (name,))
    assert (stored.deleted, stored.version, stored.attributes["text"]) == (False, 3, "two")
    with pytest.raises(Conflict):
        commit(Replace(THINGS, (name,), {"id": name}, 1, frozenset()))


def test_an_unknown_job_never_expires_and_is_settled_by_another_job_once(stores: Stores) -> None:
    first = claim()
    hold = granted(stores, first).hold
    stores.records.commit(hold, Commit(Status.UNKNOWN, failure=FAILURE), START)
    view = stores.records.view(first.record)
    assert (view.status, view.expires, view.last_failure, view.payload) == (Status.UNKNOWN, None, FAILURE, "{}")
    reconciliation = Reconciliation(first.record, Status.COMPLETED, '"found"')
    commit = Commit(Status.COMPLETED, tags=(Tag("t"), Tag("u", Version(2**60, 1))), reconciliations=(reconciliation,))
    stores.records.commit(granted(stores, claim()).hold, commit, START)
    view = stores.records.view(first.record)
    assert (view.status, view.result, view.payload) == (Status.COMPLETED, '"found"', None)
    # A copy of its message repeats the invalidation of the commit that settled it.
    assert stores.records.claim(again(first), START) == Ended(Status.COMPLETED, commit.tags)
    with pytest.raises(Conflict):
        stores.records.commit(
            granted(stores, claim()).hold, Commit(Status.COMPLETED, reconciliations=(reconciliation,)), START
        )


def test_an_unknown_job_may_be_set_to_run_again(stores: Stores) -> None:
    first = claim()
    stores.records.commit(granted(stores, first).hold, Commit(Status.UNKNOWN), START)
    reconciliation = Reconciliation(first.record, Status.RETRYING)
    stores.records.commit(
        granted(stores, claim()).hold, Commit(Status.COMPLETED, reconciliations=(reconciliation,)), START
    )
    assert granted(stores, again(first)).attempt == 2


def test_an_update_writes_what_was_changed_and_leaves_the_rest(stores: Stores) -> None:
    name = f"thing-{next(fresh)}"
    kinds: dict[str, Any] = {
        "n": frozenset({1, Decimal("2.5")}),
        "b": b"\x00",
        "big": 10**50,
        "d": Decimal("30.40"),
        "l": [1, {"x": None}],
    }

    def commit(*writes: Any) -> None:
        stores.records.commit(granted(stores, claim()).hold, Commit(Status.COMPLETED, writes=writes), START)

    commit(Create(THINGS, (name,), {"id": name, "text": "one", **kinds}))
    before = stores.items.read(THINGS, (name,))
    assert before.attributes == {"id": name, "text": "one", **kinds}
    commit(Replace(THINGS, (name,), {**before.attributes, "text": "two", "n": "not written"}, 1, frozenset({"text"})))
    after = stores.items.read(THINGS, (name,))
    assert (after.version, after.attributes) == (2, {**before.attributes, "text": "two"})


def test_what_a_handler_does_to_a_value_it_read_is_not_in_the_store(stores: Stores) -> None:
    name = f"thing-{next(fresh)}"
    write = Create(THINGS, (name,), {"id": name, "lines": ["a"]})
    stores.records.commit(granted(stores, claim()).hold, Commit(Status.COMPLETED, writes=(write,)), START)
    stores.items.read(THINGS, (name,)).attributes["lines"].append("b")
    assert stores.items.read(THINGS, (name,)).attributes["lines"] == ["a"]


def test_a_record_whose_attempt_is_not_the_one_seen_is_not_begun_anew(moto_database: Database) -> None:
    """One attempt, given back and claimed again, looks the same but for its token."""
    records = moto_database.records(FakeClock())
    first = claim()
    hold = records.claim(first, START).hold  # type: ignore[union-attr]
    records.bury(hold, 1, FAILURE, START)
    seen = records.view(first.record)
    assert seen is not None
    layer = records.layer.for_attempt(Hold(first.record, "mine"), START, records.clock, records.random)
    layer.claim = again(first, death=1)
    with pytest.raises(IdempotencyItemAlreadyExistsError):
        layer.reset(replace(seen, token="another"))
    layer.reset(seen)


def test_i27_fencing_numbers_of_a_key_grow_with_every_attempt_and_are_the_attempts_own(stores: Stores) -> None:
    key, other = f"lock-{next(fresh)}", f"lock-{next(fresh)}"
    first = claim()
    one = granted(stores, first).hold
    assert [stores.records.fence(one, key) for _ in range(3)] == [1, 1, 1]
    assert stores.records.fence(one, other) == 1
    later = first.until + SOON
    two = granted(stores, again(first), later).hold
    assert stores.records.fence(two, key) == 2
    with pytest.raises(ClaimLost):
        stores.records.fence(one, key)  # a zombie gets no number above its successor's
    stores.records.release(two, Release(later), later)
    with pytest.raises(ClaimLost):
        stores.records.fence(two, key)
    assert stores.records.fence(granted(stores, claim()).hold, key) == 3


def test_a_claim_is_prolonged_by_its_holder_alone(stores: Stores) -> None:
    first = claim()
    hold = granted(stores, first).hold
    stores.records.prolong(hold, START + 2 * SOON, START)
    assert stores.records.view(first.record).claim_until == START + 2 * SOON
    with pytest.raises(ClaimLost):
        stores.records.prolong(Hold(first.record, "another"), START + 9 * SOON, START)
    assert stores.records.view(first.record).claim_until == START + 2 * SOON
    stores.records.commit(hold, Commit(Status.COMPLETED), START)
    with pytest.raises(ClaimLost):
        stores.records.prolong(hold, START + 9 * SOON, START)
