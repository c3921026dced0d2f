"""What a handler may stage, and what is refused before anything is written."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest

from shared.backends.memory.cache import MemoryCache
from shared.caching.store import Loaded
from shared.commit import Reconciliation
from shared.dependency import Dependency, Reply
from shared.errors import DeclarationError, LeaseLost, Refused
from shared.item import Create, Delete, Replace, Stored, Unchanged
from shared.job_record import Status
from shared.lease import Lease, Want
from shared.message import Message
from shared.table import Table
from shared.tag import Tag, Version
from tests.unit.case import LINES, OTHER, SHOP, Case
from tests.world import THINGS, FakeClock, acquired


def test_what_was_read_is_demanded_unchanged() -> None:
    case = Case()
    case.work.read(THINGS, "a")
    case.work.read(THINGS, "absent")
    assert case.work.staged.writes == (Unchanged(THINGS, ("a",), 3), Unchanged(THINGS, ("absent",), None))


def test_an_item_is_read_once() -> None:
    case = Case()
    assert case.work.read(THINGS, "a") is case.work.read(THINGS, "a")


def test_updates_of_one_item_are_one_write_on_the_version_read() -> None:
    case = Case()
    item = case.work.read(THINGS, "a")
    assert item is not None
    item = case.work.update(item, text="y")
    item = case.work.update(item, more=1)
    assert (item["text"], item["more"]) == ("y", 1)
    assert case.work.staged.writes == (
        Replace(THINGS, ("a",), {"id": "a", "text": "y", "more": 1}, 3, frozenset({"text", "more"})),
    )


def test_there_is_no_blind_overwrite() -> None:
    case = Case()
    foreign = Case().work.read(THINGS, "a")
    assert foreign is not None
    with pytest.raises(Refused, match="was not read"):
        case.work.update(foreign, text="y")
    case.work.read(THINGS, "a")
    with pytest.raises(Refused, match="exists: update it"):
        case.work.create(THINGS, id="a")


def test_an_item_that_was_changed_since_cannot_be_changed_by_its_old_face() -> None:
    case = Case()
    item = case.work.read(THINGS, "a")
    assert item is not None
    case.work.update(item, text="y")
    with pytest.raises(Refused, match="go on with what"):
        case.work.update(item, text="z")


def test_a_key_never_changes_and_the_product_owns_its_attributes() -> None:
    case = Case()
    item = case.work.read(THINGS, "a")
    assert item is not None
    with pytest.raises(Refused, match="a key never changes"):
        case.work.update(item, id="b")
    with pytest.raises(Refused, match="belong to the product"):
        case.work.update(item, version=9)
    with pytest.raises(Refused, match="belong to the product"):
        case.work.create(THINGS, id="c", ttl=1)


def test_create_update_delete_within_one_unit_of_work() -> None:
    case = Case()
    made = case.work.create(LINES, order="o", line="1", text="x")
    made = case.work.update(made, text="y")
    assert case.writes() == (Create(LINES, ("o", "1"), {"order": "o", "line": "1", "text": "y"}),)
    case.work.delete(made)
    assert case.writes() == (Unchanged(LINES, ("o", "1"), None),)  # what was believed absent still must be
    item = case.work.read(THINGS, "a")
    assert item is not None
    case.work.delete(item)
    write = case.work.staged.writes[-1]
    assert isinstance(write, Delete)
    assert write.seen == 3


def test_a_tombstone_reads_as_nothing_and_is_created_over_at_its_version() -> None:
    case = Case()
    case.database.items["things", ("a",)] = Stored({"id": "a"}, 4, deleted=True)
    assert case.work.read(THINGS, "a") is None
    assert case.writes() == (Unchanged(THINGS, ("a",), 4),)
    case.work.create(THINGS, id="a")
    assert case.writes() == (Replace(THINGS, ("a",), {"id": "a"}, 4, frozenset({"id"})),)


def test_pay_09_floats_are_refused_when_staged() -> None:
    case = Case()
    with pytest.raises(Refused, match="use Decimal"):
        case.work.create(THINGS, id="b", amount=0.1)  # type: ignore[arg-type]
    assert case.work.staged.writes == ()


def test_only_declared_tables_and_rights_are_used() -> None:
    case = Case()
    with pytest.raises(DeclarationError, match="add it to `uses`"):
        case.work.read(Table("secret", key="id"), "a")
    with pytest.raises(DeclarationError, match="read-write"):
        case.work.create(OTHER, id="a")


def test_a_transaction_holds_a_hundred_items_with_the_job_record() -> None:
    case = Case()
    for number in range(99):
        case.work.create(THINGS, id=f"n{number}")
    assert len(case.work.staged.writes) == 99
    case.work.enqueue(Message("note", 1, "k", "{}"))
    with pytest.raises(Refused, match=r"99 items \+ 1 messages .* = 101"):
        _ = case.work.staged.writes


def test_a_transaction_holds_four_megabytes() -> None:
    case = Case()
    for number in range(11):
        case.work.create(THINGS, id=f"n{number}", text="x" * 400_000)
    with pytest.raises(Refused, match="in one transaction"):
        _ = case.work.staged.writes


@pytest.mark.parametrize("delay", [timedelta(seconds=-1), timedelta(days=367)])
def test_a_delay_that_nobody_keeps_is_refused(delay: timedelta) -> None:
    with pytest.raises(Refused, match="366 days"):
        Case().work.enqueue(Message("note", 1, "k", "{}"), delay=delay)


def test_of_two_invalidations_of_one_tag_the_higher_floor_holds() -> None:
    work = Case().work
    work.invalidate("a", version=7)
    work.invalidate("a", "b", version=6)
    work.invalidate("a")
    assert work.staged.tags == (Tag("a", Version(7)), Tag("b", Version(6)))
    work.invalidate("a", version=Version(1, epoch=2))
    assert work.staged.tags == (Tag("a", Version(1, epoch=2)), Tag("b", Version(6)))


def test_messages_tags_and_reconciliations_are_collected() -> None:
    work = Case().work
    work.enqueue(Message("note", 1, "k", "{}"), worker="others", delay=timedelta(seconds=3))
    work.invalidate("a", "b")
    work.invalidate("a")
    work.reconcile(Reconciliation("r", Status.COMPLETED))
    (posting,) = work.staged.postings
    assert (posting.worker, posting.delay) == ("others", timedelta(seconds=3))
    assert work.staged.tags == (Tag("a"), Tag("b"))
    assert work.staged.reconciliations == (Reconciliation("r", Status.COMPLETED),)
    for wrong in ("", 5, None):
        with pytest.raises(Refused, match="a string that is not empty"):
            work.invalidate(wrong)  # type: ignore[arg-type]
    for number in (-1, True, "7", 10**99):
        with pytest.raises(Refused, match="A version is made of integers"):
            work.invalidate("c", version=number)  # type: ignore[arg-type]
    assert work.staged.tags == (Tag("a"), Tag("b"))
    with pytest.raises(Refused, match="settled twice"):
        work.reconcile(Reconciliation("r", Status.FAILED))
    with pytest.raises(Refused, match="not as running"):
        Reconciliation("r", Status.RUNNING)


@pytest.mark.parametrize("key", [(), ("a", "b"), ("",), (5,)])
def test_a_key_of_another_shape_is_refused(key: Any) -> None:
    with pytest.raises(Refused, match="is read by 1 strings"):
        Case().work.read(THINGS, *key)


def test_a_call_is_bounded_by_its_timeout_and_the_deadline() -> None:
    case = Case()
    assert case.work.call(SHOP, "GET", "/") == Reply(200, {})
    case.clock.pass_(timedelta(seconds=31))
    with pytest.raises(TimeoutError):
        case.work.call(SHOP, "GET", "/")
    with pytest.raises(DeclarationError, match="without declaring"):
        Case().work.call(Dependency("elsewhere"), "GET", "/")
    assert len(case.calls) == 1


@pytest.mark.parametrize("step", ["read", "call"])
def test_lck_07_a_lost_lease_is_told_before_the_next_step(step: str) -> None:
    clock = FakeClock()
    cache = MemoryCache(clock)
    acquired(cache, "k", "t", timedelta(seconds=30))
    want = Want("k", "t", timedelta(seconds=30))
    lease = Lease(want, cache, clock, 29.0, clock.now() + want.ttl, 0.0)
    case = Case(guards=(lease,))
    lease.lost.set()
    with pytest.raises(LeaseLost):
        case.work.read(THINGS, "a") if step == "read" else case.work.call(SHOP, "GET", "/")
    assert case.calls == []


def test_a_refresh_is_an_invalidation_with_the_version_of_what_is_kept() -> None:
    work = Case(random=Random(7)).work  # noqa: S311 - repeatable
    entry = Loaded("text", Version(3))
    work.refresh("user/1", "user", entry)
    (tag,) = work.staged.tags
    assert tag.fresh is not None
    assert (tag.bare, tag.fresh.name, tag.fresh.entry) == (Tag("user/1", Version(3)), "user", entry)
    assert timedelta(0) < tag.fresh.lives.soft < tag.fresh.lives.hard <= timedelta(minutes=10)


def test_an_entry_without_a_version_cannot_be_refreshed() -> None:
    work = Case().work
    with pytest.raises(Refused, match="old from new"):
        work.refresh("user/1", "user", Loaded("text"))
    assert work.staged.tags == ()


@pytest.mark.parametrize("first", ["refresh", "invalidate"])
def test_what_is_invalidated_and_refreshed_is_invalidated(first: str) -> None:
    work = Case().work
    if first == "invalidate":
        work.invalidate("user/1", version=2)
    work.refresh("user/1", "user", Loaded("text", Version(3)))
    if first == "refresh":
        work.invalidate("user/1", version=2)
    assert work.staged.tags == (Tag("user/1", Version(3)),)
