"""What every store of job records promises of calls that cannot be repeated, and of how long a job has been begun."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from shared.commit import Commit, Reconciliation, Release
from shared.errors import ClaimLost
from shared.job_record import RETENTION, Status
from tests.conformance.claims import FAILURE, again, claim, granted
from tests.world import START

if TYPE_CHECKING:
    from tests.conformance.conftest import Stores

HOUR = timedelta(hours=1)


def test_i21_an_intent_is_known_to_its_attempt_and_stops_the_next(stores: Stores) -> None:
    first = claim()
    hold = granted(stores, first).hold
    assert stores.records.intend(hold, "shop")
    assert stores.records.intend(hold, "shop")  # its reply was lost
    assert stores.records.view(first.record).intents == {"shop": first.token}
    later = granted(stores, again(first), first.until + HOUR).hold
    assert not stores.records.intend(later, "shop")
    assert not stores.records.intend(later, "shop")


def test_intents_for_two_dependencies_are_two(stores: Stores) -> None:
    first = claim()
    hold = granted(stores, first).hold
    assert stores.records.intend(hold, "shop")
    assert stores.records.intend(hold, "post")
    later = granted(stores, again(first), first.until + HOUR).hold
    assert [stores.records.intend(later, name) for name in ("post", "shop", "bank")] == [False, False, True]


def test_what_was_taken_back_stops_nobody(stores: Stores) -> None:
    first = claim()
    hold = granted(stores, first).hold
    stores.records.intend(hold, "shop")
    for _ in range(2):
        stores.records.withdraw(hold, "shop")
    later = granted(stores, again(first), first.until + HOUR).hold
    assert stores.records.intend(later, "shop")


def test_nobody_takes_anothers_intent_back(stores: Stores) -> None:
    first = claim()
    stores.records.intend(granted(stores, first).hold, "shop")
    later = granted(stores, again(first), first.until + HOUR).hold
    stores.records.withdraw(later, "shop")
    assert not stores.records.intend(later, "shop")


def test_i15_a_zombie_writes_no_intent_and_takes_none_back(stores: Stores) -> None:
    first = claim()
    zombie = granted(stores, first).hold
    later = granted(stores, again(first), first.until + HOUR).hold
    with pytest.raises(ClaimLost):
        stores.records.intend(zombie, "shop")
    assert stores.records.intend(later, "shop")
    for write in (stores.records.intend, stores.records.withdraw):
        with pytest.raises(ClaimLost):
            write(zombie, "shop")
    stores.records.commit(later, Commit(Status.COMPLETED), START + HOUR)
    with pytest.raises(ClaimLost):
        stores.records.intend(later, "shop")


def test_an_intent_outlives_the_giving_back_of_its_attempt_and_the_death_of_its_job(stores: Stores) -> None:
    first = claim()
    hold = granted(stores, first).hold
    stores.records.intend(hold, "shop")
    stores.records.release(hold, Release(START, gives_attempt_back=True), START)
    second = again(first)
    hold = granted(stores, second).hold
    assert not stores.records.intend(hold, "shop")
    stores.records.bury(hold, 1, FAILURE, START)
    replayed = again(second, death=1)
    assert not stores.records.intend(granted(stores, replayed).hold, "shop")


def unknown(stores: Stores) -> tuple[str, str]:
    """A job that stopped as unknown with an intent; its record and key."""
    first = claim()
    hold = granted(stores, first).hold
    stores.records.intend(hold, "shop")
    stores.records.commit(hold, Commit(Status.UNKNOWN), START)
    return first.record, first.idempotency_key


def test_a_reconciliation_that_found_nothing_done_clears_intents_and_age(stores: Stores) -> None:
    record, key = unknown(stores)
    settling = granted(stores, claim()).hold
    settled = Commit(Status.COMPLETED, reconciliations=(Reconciliation(record, Status.RETRYING),))
    stores.records.commit(settling, settled, START + HOUR)
    answer = granted(stores, claim(key, until=START + 3 * HOUR), START + 2 * HOUR)
    assert answer.view.begun_at == START + 2 * HOUR
    assert stores.records.intend(answer.hold, "shop")


def test_a_job_is_as_old_as_its_first_attempt_through_retries_and_deaths(stores: Stores) -> None:
    first = claim()
    answer = granted(stores, first)
    assert answer.view.begun_at == START
    stores.records.release(answer.hold, Release(START, FAILURE), START)
    second = again(first)
    answer = granted(stores, second, START + HOUR)
    assert (answer.view.begun_at, answer.view.last_failure) == (START, FAILURE)
    stores.records.bury(answer.hold, 1, FAILURE, START + HOUR)
    third = again(second, death=1, until=START + 3 * HOUR)
    assert granted(stores, third, START + 2 * HOUR).view.begun_at == START


def test_another_job_of_an_expired_key_begins_without_a_past(stores: Stores) -> None:
    first = claim()
    hold = granted(stores, first).hold
    stores.records.intend(hold, "shop")
    stores.records.commit(hold, Commit(Status.COMPLETED), START)
    later = START + RETENTION + HOUR
    answer = granted(stores, again(first, until=later + HOUR), later)
    assert answer.view.begun_at == later
    assert stores.records.intend(answer.hold, "shop")
