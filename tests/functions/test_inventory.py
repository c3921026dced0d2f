"""The worker `inventory`: every file of events/inventory on real stores, and what keeps a copy whole."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from functions import inventory
from functions.inventory import HEAD, SyncInventory, inventory_tag, part_name, sync_inventory
from functions.outside.inventory_source import MOST_LINES, PAGE_LINES
from local.demo.situations import EVENTS
from local.outside.inventory_system import InventorySystem, kind_of
from shared.backends.memory.database import MemoryDatabase
from shared.backends.memory.transport import MemoryTransport
from shared.caching.lives import Lives
from shared.caching.store import Loaded, Miss
from shared.dependency import Reply
from shared.errors import Ambiguous, DeadLetter, Rejected, RetryLater, Unavailable
from shared.item import Create, Delete, Replace, Unchanged
from shared.outcome import Because, Completed, Failed, Postponed, Retried
from shared.tag import Tag, Version
from tests.serving import serving
from tests.stack import Stack, new_stack
from tests.world import FakeClock, World, acquired, body, unit_of_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from local.stack.valkey import Valkey
    from shared.unit_of_work import UnitOfWork

PATIENCE = timedelta(minutes=7)  # of a machine that does much else; a quiet one takes half a minute
pytestmark = pytest.mark.timeout(PATIENCE.total_seconds() + 60)
FILES = EVENTS.parent / "inventory"
# By file: status and least attempts of the job, its lines, and the reason of its dead letter.
ENDS: dict[str, tuple[str, int, int | None, str | None]] = {
    "new-inventory": ("completed", 1, 3, None),
    "same-message-three-times": ("completed", 1, 3, None),
    "two-jobs-one-user": ("completed", 1, 3, None),
    "system-503-twice": ("completed", 1, 3, None),
    "system-500-once": ("completed", 1, 3, None),
    "system-rate-limits": ("completed", 1, 3, None),
    "system-times-out": ("completed", 1, 3, None),
    "changes-between-pages": ("completed", 1, 1200, None),
    "forgets-its-cursor": ("completed", 1, 1200, None),
    "keeps-changing": ("dead-lettered", 6, None, "transient"),
    "unknown-user": ("failed", 1, None, None),
    "large-inventory": ("completed", 1, 2500, None),
    "too-large": ("dead-lettered", 1, None, "inventory-too-large"),
    "wrong-payload": ("", 0, None, "invalid-payload"),
}


def bodies(name: str) -> list[str]:
    event = json.loads((FILES / f"{name}.json").read_text(encoding="utf-8"))
    return [record["body"] for record in event["Records"]]


@pytest.fixture(scope="module")
def ended(aws_endpoint: str, valkey: Valkey) -> Iterator[Stack]:
    """All situations, sent at once and run to their end."""
    with serving(InventorySystem(0, quiet=True)) as system:
        stack = new_stack(valkey, system, visibility=42, worker=inventory.WORKER)
        for name in ENDS:
            for text in bodies(name):
                stack.send(text)
        stack.run(patience=PATIENCE)
        yield stack


def copy_of(stack: Stack, user: str) -> dict[str, Any]:
    """The items of a user by their part."""
    found = stack.database.client.query(
        TableName=stack.settings.tables["inventory"],
        KeyConditionExpression="user_id = :user",
        ExpressionAttributeValues={":user": {"S": user}},
        ConsistentRead=True,
    )
    return {item["part"]["S"]: item for item in found["Items"]}


def test_every_event_file_is_a_situation() -> None:
    assert {path.stem for path in FILES.glob("*.json")} == set(ENDS)


@pytest.mark.parametrize("name", [name for name, end in ENDS.items() if end[0]])
def test_r3_4_a_synchronisation_ends_as_it_should(ended: Stack, name: str) -> None:
    status, attempts, lines, _ = ENDS[name]
    items = ended.database.client.scan(TableName=ended.settings.jobs_table)["Items"]
    keys = {json.loads(text)["idempotency_key"] for text in bodies(name)}
    records = [item for item in items if item["idempotency_key"]["S"] in keys]
    assert [record["status"]["S"] for record in records] == [status] * len(keys)
    assert all(int(record["attempts"]["N"]) >= attempts for record in records)
    # Whether such a failure counts depends on whether the system served others meanwhile.
    assert {"first_failure" in record for record in records if name.startswith("system-")} <= {True}
    user = json.loads(bodies(name)[0])["payload"]["user_id"]
    kept = copy_of(ended, user)
    if lines is None:
        assert kept == {}
        return
    head = kept.pop(HEAD)
    assert Decimal(head["lines"]["N"]) == lines
    assert {part["snapshot"]["S"] for part in kept.values()} == {head["snapshot"]["S"]}
    assert sum(len(part["lines"]["L"]) for part in kept.values()) == lines
    assert len(kept) == Decimal(head["parts"]["N"])


def test_the_dead_letter_queue_holds_exactly_the_hopeless_with_their_reasons(ended: Stack) -> None:
    expected = sorted(reason for *_, reason in ENDS.values() if reason)
    assert sorted(facts["reason"] for _, facts in ended.dead_letters()) == expected
    assert ended.mapping.errors == []


def test_two_jobs_for_one_user_wrote_one_snapshot_once(ended: Stack) -> None:
    kept = copy_of(ended, "slow-raced")
    assert {item["version"]["N"] for item in kept.values()} == {"1"}


def test_an_inventory_that_changed_between_two_pages_is_that_of_one_moment(ended: Stack) -> None:
    kept = copy_of(ended, "changing-once")
    head = kept.pop(HEAD)
    lines = [line["M"] for name in sorted(kept) for line in kept[name]["lines"]["L"]]
    generation = int(head["snapshot"]["S"].rpartition(".")[2])
    assert [Decimal(line["quantity"]["N"]) for line in lines] == [number * generation for number in range(1200)]


class System:
    """The outside system, in this process: what it has, and what it was asked."""

    def __init__(self, lines: int = 3, snapshot: str = "s-1") -> None:
        self.lines = [{"sku": f"sku-{number}", "quantity": number} for number in range(lines)]
        self.snapshot = snapshot
        self.asked: list[str] = []
        self.before: Callable[[str], Reply | None] = lambda path: None

    def __call__(self, method: str, path: str, content: object, headers: object) -> Reply:
        assert method == "GET"
        self.asked.append(path)
        special = self.before(path)
        if special is not None:
            return special
        begin = int(path.partition("cursor=")[2] or 0)
        end = begin + PAGE_LINES
        more = str(end) if end < len(self.lines) else None
        return Reply(200, {"snapshot": self.snapshot, "lines": self.lines[begin:end], "next": more})


class Case:
    """Synchronisations of one user on memory stores, through the whole pipeline."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.world = World(inventory.WORKER, transport=MemoryTransport(system))
        self.number = 0

    def sync(self) -> Any:
        self.number += 1
        text = body(job_type="sync-inventory", idempotency_key=f"k{self.number}", payload={"user_id": "u"})
        return self.world.execute(text, left=timedelta(seconds=90))

    def items(self) -> dict[str, Any]:
        stored = self.world.database.items
        return {key[1]: item for (_, key), item in stored.items() if not item.deleted}


def test_the_same_snapshot_again_is_asked_for_once_and_writes_nothing_but_invalidates() -> None:
    case = Case(System(1200))
    assert isinstance(case.sync(), Completed)
    before, asked = case.items(), len(case.system.asked)
    refill = ("inventory/u", "n", "reader", timedelta(minutes=1), None)
    assert case.world.cache.fetch(*refill) == Miss()
    assert isinstance(case.sync(), Completed)
    assert case.items() == before
    assert (asked, len(case.system.asked)) == (3, 4)
    lives = Lives(timedelta(minutes=1), timedelta(minutes=1))
    assert not case.world.cache.store("inventory/u", "n", "reader", Loaded("what was read before"), lives)


def test_a_smaller_snapshot_leaves_no_part_of_the_larger_one() -> None:
    case = Case(System(2500))
    case.sync()
    assert set(case.items()) == {HEAD, part_name(0), part_name(1), part_name(2)}
    case.system.lines, case.system.snapshot = case.system.lines[:10], "s-2"
    case.sync()
    assert set(case.items()) == {HEAD, part_name(0)}
    assert case.items()[HEAD].version == 2
    case.system.lines, case.system.snapshot = System(1500).lines, "s-3"
    case.sync()
    assert set(case.items()) == {HEAD, part_name(0), part_name(1)}
    assert {item.attributes["snapshot"] for item in case.items().values()} == {"s-3"}


def test_an_empty_inventory_is_one() -> None:
    case = Case(System(0))
    assert isinstance(case.sync(), Completed)
    assert set(case.items()) == {HEAD}


def test_r3_4_whoever_synchronised_meanwhile_all_the_same_makes_the_commit_fail() -> None:
    case = Case(System())
    case.sync()
    case.system.snapshot = "s-2"
    overtaken: list[object] = []

    def overtake(path: str) -> None:
        if not overtaken:
            overtaken.append(path)
            case.world.cache.leases.clear()  # Redis forgets the lock
            case.system.snapshot = "s-3"
            overtaken.append(case.sync())
            case.system.snapshot = "s-2"

    case.system.before = overtake
    assert isinstance(case.sync(), Retried)
    assert isinstance(overtaken[1], Completed)
    assert {item.attributes["snapshot"] for item in case.items().values()} == {"s-3"}


def test_r3_4_a_synchronisation_waits_while_another_of_the_same_user_runs() -> None:
    case = Case(System())
    assert acquired(case.world.cache, "inventory/u", "another", timedelta(minutes=1))
    outcome = case.sync()
    assert isinstance(outcome, Postponed)
    assert (outcome.because, case.system.asked) == (Because.CONTENDED, [])


def test_the_largest_inventory_fits_into_one_transaction() -> None:
    system = System(0)
    system.lines = [{"sku": f"{number:>0100}", "quantity": 10**15 - 1} for number in range(MOST_LINES)]
    case = Case(system)
    assert isinstance(case.sync(), Completed)
    assert len(case.items()) == inventory.MOST_PARTS + 1


def work_on(answer: Callable[..., Reply], clock: FakeClock | None = None) -> UnitOfWork:
    database = MemoryDatabase(clock or FakeClock())
    return unit_of_work(answer, sync_inventory.uses, database, worker="inventory", time=timedelta(seconds=60))


def sync(work: UnitOfWork) -> object:
    return sync_inventory(SyncInventory(user_id="u"), work)


def test_a_user_whom_the_system_does_not_know_is_told_so() -> None:
    work = work_on(lambda *request: Reply(404, {"code": "unknown_user"}))
    assert sync(work) == Failed("unknown_user", "the inventory system does not know the user")
    assert [type(write) for write in work.staged.writes] == [Unchanged]
    assert work.staged.tags == ()


def test_a_user_id_is_one_segment_of_the_path_whatever_it_holds() -> None:
    system = System()
    work = work_on(system)
    sync_inventory(SyncInventory(user_id="../ledger?x=1#é"), work)
    assert system.asked == [f"/v1/inventories/..%2Fledger%3Fx%3D1%23%C3%A9?limit={PAGE_LINES}"]


def test_a_page_is_not_begun_without_the_time_for_it_and_for_the_commit() -> None:
    clock, system = FakeClock(), System(MOST_LINES)
    system.before = lambda path: clock.pass_(timedelta(seconds=5))
    with pytest.raises(RetryLater, match="too little time"):
        sync(work_on(system, clock))
    assert len(system.asked) == 9  # 45 of 60 seconds are over


def test_a_snapshot_that_always_changes_is_begun_three_times_and_left_for_later() -> None:
    system = System(1200)

    def change(path: str) -> None:
        system.snapshot += "."

    system.before = change
    with pytest.raises(RetryLater, match="changes while it is read"):
        sync(work_on(system))
    assert len(system.asked) == 6


@pytest.mark.parametrize("lines", [MOST_LINES + 1, 2 * MOST_LINES])
def test_an_inventory_that_no_transaction_holds_is_refused_before_anything_is_staged(lines: int) -> None:
    work = work_on(System(lines))
    with pytest.raises(DeadLetter) as caught:
        sync(work)
    assert caught.value.reason == "inventory-too-large"
    assert [type(write) for write in work.staged.writes] == [Unchanged]


def test_pages_without_an_end_are_left() -> None:
    calls = []

    def endless(*request: object) -> Reply:
        calls.append(request)
        return Reply(200, {"snapshot": "s", "lines": [], "next": "more"})

    with pytest.raises(DeadLetter):
        sync(work_on(endless))
    assert len(calls) == 41


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"snapshot": "", "lines": []},
        {"snapshot": "s", "lines": [{"sku": "a", "quantity": "3"}]},
        {"snapshot": "s", "lines": [{"sku": "a", "quantity": -1}]},
        {"snapshot": "s", "lines": [{"sku": "a\n", "quantity": 1}]},
        {"snapshot": "s", "lines": [{"sku": "a", "quantity": 1}] * 501},
        {"snapshot": "s", "lines": [{"sku": "a", "quantity": 1}, {"sku": "a", "quantity": 2}]},
    ],
)
def test_an_answer_that_is_not_what_the_system_documents_is_asked_for_again(content: object) -> None:
    with pytest.raises(Unavailable):
        sync(work_on(lambda *request: Reply(200, content)))


def test_no_answer_to_a_question_is_no_unknown_outcome() -> None:
    def silent(*request: object) -> Reply:
        raise Ambiguous("no answer", dependency="inventory-system")

    with pytest.raises(Unavailable):
        sync(work_on(silent))


def test_a_refusal_is_final() -> None:
    with pytest.raises(Rejected):
        sync(work_on(lambda *request: Reply(403, {})))


def test_the_writes_of_a_copy_are_conditional_each() -> None:
    work = work_on(System())
    result = sync(work)
    assert isinstance(result, BaseModel)
    assert result.model_dump() == {"user_id": "u", "snapshot": "s-1", "lines": 3, "version": 1}
    assert [type(write) for write in work.staged.writes] == [Create, Create]
    assert not {Replace, Delete} & {type(write) for write in work.staged.writes}
    assert work.staged.tags == (Tag(inventory_tag("u"), Version(1)),)


def test_what_the_stand_in_calls_huge_is_over_the_limit() -> None:
    assert kind_of("huge-user").lines == MOST_LINES + 1
