"""The worker `invoices`: every file of events/invoices on real stores, and what a calculation promises."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from functions import invoices
from functions.invoices import ATTEMPTS, from_1, recalculate_invoice
from functions.views.invoices import INVOICES, invoice_tag
from local.demo.seed import invoice_item
from local.demo.situations import EVENTS
from local.outside.notification_service import NotificationService
from shared.caching.lives import Lives
from shared.caching.store import Loaded, Miss
from shared.item import Stored
from shared.job_record import SYSTEM, record_id
from shared.outcome import Because, Completed, DeadLettered, Duplicate, Postponed, Retried
from shared.tag import Version
from shared.wire.parsing import read_message
from tests.serving import serving
from tests.stack import Stack, new_stack
from tests.world import World, acquired, body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.stack.valkey import Valkey

FILES = EVENTS.parent / "invoices"
GROSS = "36.18"
# By file: status of each job, its least attempts, and the reasons of its dead letters.
ENDS: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "changed-invoice": (("completed",), 1, ()),
    "same-message-three-times": (("completed",), 1, ()),
    "two-jobs-one-key": (("completed",), 1, ()),
    "two-jobs-one-invoice": (("completed", "completed"), 1, ()),
    "old-and-new-version": (("completed",), 1, ()),
    "older-job-comes-late": (("completed", "completed"), 1, ()),
    "change-is-not-there-yet": (("dead-lettered",), ATTEMPTS, ("change-not-there",)),
    "unknown-invoice": (("dead-lettered",), 1, ("unknown-invoice",)),
    "closed-invoice": (("dead-lettered",), 1, ("impossible-state",)),
    "lines-without-numbers": (("dead-lettered",), 1, ("invalid-lines",)),
    "totals-without-end": (("dead-lettered",), 1, ("not-representable",)),
    "wrong-payload": ((), 0, ("invalid-payload",)),
    "wrong-old-payload": ((), 0, ("invalid-payload",)),
}
SEEDED: dict[str, tuple[int, dict[str, Any]]] = {  # by invoice: its version, and what is special about it
    "inv-changed": (2, {}),
    "inv-thrice": (2, {}),
    "inv-one-key": (2, {}),
    "inv-raced": (2, {}),
    "inv-rollout": (2, {}),
    "inv-late": (3, {}),
    "inv-behind": (8, {}),
    "inv-closed": (2, {"status": {"S": "paid"}}),
    "inv-wrong": (2, {"lines": {"L": [{"M": {"unit_price": {"S": "much"}}}]}}),
    "inv-endless": (
        2,
        {
            "lines": {
                "L": [{"M": {name: {"S": "9" * 38} for name in ("unit_price", "quantity")} | {"tax_rate": {"S": "0"}}}]
            }
        },
    ),
}
CALCULATED = ("inv-changed", "inv-thrice", "inv-one-key", "inv-raced", "inv-rollout", "inv-late")


def bodies(name: str) -> list[str]:
    event = json.loads((FILES / f"{name}.json").read_text(encoding="utf-8"))
    return [record["body"] for record in event["Records"]]


@pytest.fixture(scope="module")
def ended(aws_endpoint: str, valkey: Valkey) -> Iterator[Stack]:
    """All situations, sent at once and run to their end."""
    with serving(NotificationService(0, quiet=True)) as service:  # nobody calls it here
        stack = new_stack(valkey, service, worker=invoices.WORKER)
        for invoice_id, (version, special) in SEEDED.items():
            item = {**invoice_item(invoice_id, "ann", version), **special}
            stack.database.client.put_item(TableName=stack.settings.tables["invoices"], Item=item)
        for name in ENDS:
            for text in bodies(name):
                stack.send(text)
        stack.run(patience=timedelta(seconds=120))
        yield stack


def invoice(stack: Stack, invoice_id: str) -> dict[str, Any]:
    answer = stack.database.client.get_item(
        TableName=stack.settings.tables["invoices"], Key={"invoice_id": {"S": invoice_id}}, ConsistentRead=True
    )
    item: dict[str, Any] = answer["Item"]
    return item


def notices(stack: Stack) -> list[tuple[str, int]]:
    """What is asked of the worker `notifications`: invoice and version."""
    items = stack.database.client.scan(TableName=stack.settings.outbox_table)["Items"]
    asked = [json.loads(item["body"]["S"]) for item in items if item["worker"]["S"] == "notifications"]
    assert {message["job_type"] for message in asked} == {"notify-invoice"}
    return sorted((message["payload"]["invoice_id"], message["payload"]["version"]) for message in asked)


def test_every_event_file_is_a_situation() -> None:
    assert {path.stem for path in FILES.glob("*.json")} == set(ENDS)


@pytest.mark.parametrize("name", ENDS)
def test_r4_a_calculation_ends_as_it_should(ended: Stack, name: str) -> None:
    states, attempts, _ = ENDS[name]
    items = ended.database.client.scan(TableName=ended.settings.jobs_table)["Items"]
    keys = {json.loads(text)["idempotency_key"] for text in bodies(name)}
    records = [item for item in items if "job_type" in item and item["idempotency_key"]["S"] in keys]
    assert tuple(record["status"]["S"] for record in records) == states
    assert all(int(record["attempts"]["N"]) >= attempts for record in records)


@pytest.mark.parametrize("invoice_id", CALCULATED)
def test_r4_1_the_totals_are_written_once_with_their_version(ended: Stack, invoice_id: str) -> None:
    item, (version, _) = invoice(ended, invoice_id), SEEDED[invoice_id]
    assert [Decimal(item[name]["N"]) for name in ("version", "calculated")] == [version + 1] * 2
    assert (item["net"]["S"], item["tax"]["S"], item["gross"]["S"]) == ("30.40", "5.78", GROSS)


def test_r4_1_each_new_version_of_the_totals_asks_for_one_notice(ended: Stack) -> None:
    assert notices(ended) == sorted((name, SEEDED[name][0] + 1) for name in CALCULATED)


@pytest.mark.parametrize("invoice_id", ["inv-behind", "inv-closed", "inv-wrong", "inv-endless"])
def test_what_was_dead_lettered_has_changed_nothing(ended: Stack, invoice_id: str) -> None:
    item = invoice(ended, invoice_id)
    assert (item["version"]["N"], "calculated" in item) == (str(SEEDED[invoice_id][0]), False)


def test_r4_3_the_dead_letter_queue_holds_exactly_the_hopeless_with_their_reasons(ended: Stack) -> None:
    expected = sorted(reason for *_, reasons in ENDS.values() for reason in reasons)
    assert sorted(facts["reason"] for _, facts in ended.dead_letters()) == expected
    assert ended.mapping.errors == []


class Case:
    """One invoice on memory stores, through the whole pipeline."""

    def __init__(self, version: int = 1, **changes: Any) -> None:
        self.world = World(invoices.WORKER)
        self.number = 0
        lines = [{"description": "a thing", "unit_price": "15.20", "quantity": "2", "tax_rate": "0.19"}]
        self.put(version, **{"status": "open", "currency": "EUR", "user_id": "ann", "lines": lines, **changes})

    def put(self, version: int, **item: Any) -> None:
        self.world.database.items[INVOICES.name, ("i",)] = Stored({"invoice_id": "i", **item}, version)

    def change(self, **changes: Any) -> int:
        """As the part of the system does that changes invoices; give the new version."""
        self.put(self.stored.version + 1, **{**self.stored.attributes, **changes})
        return self.stored.version

    @property
    def stored(self) -> Stored:
        found: Stored = self.world.database.items[INVOICES.name, ("i",)]
        return found

    @property
    def asked(self) -> list[int]:
        """The versions that notices were asked for."""
        postings = self.world.database.outbox.values()
        return [json.loads(read_message(posting.body).payload)["version"] for posting in postings]

    def run(self, version: int, key: str | None = None, **record: Any) -> Any:
        self.number += 1
        payload = {"invoice_id": "i", "version": version}
        key = key or f"k{self.number}"
        text = body(job_type="recalculate-invoice", version=2, idempotency_key=key, payload=payload)
        return self.world.execute(text, **record)


def test_i12_an_older_job_that_comes_late_never_writes_over_a_newer_state() -> None:
    case = Case()
    assert case.run(1) == Completed(1)
    assert case.run(case.change(lines=[])) == Completed(1)
    newest = case.stored
    assert newest.attributes["gross"] == "0"
    for version in (1, 2, 3):
        assert case.run(version) == Completed(1)
    assert case.stored == newest
    assert case.asked == [2, 4]


def test_r4_1_two_jobs_with_one_key_have_one_effect() -> None:
    case = Case()
    assert case.run(1, "one-key") == Completed(1)
    assert case.run(1, "one-key") == Duplicate("completed")
    assert (case.stored.version, case.asked) == (2, [2])


def test_a_job_finds_the_newest_state_and_leaves_the_next_one_nothing_to_do() -> None:
    case = Case()
    newer = case.change(currency="USD")
    assert case.run(1) == Completed(1)
    assert (case.stored.attributes["calculated"], case.asked) == (newer + 1, [newer + 1])
    assert case.run(newer) == Completed(1)
    assert case.asked == [newer + 1]


def test_a_change_that_is_not_there_yet_is_waited_for_and_then_calculated() -> None:
    case = Case()
    assert isinstance(case.run(2, "k"), Retried)
    case.change(lines=[])
    case.world.clock.pass_(timedelta(minutes=1))
    assert case.run(2, "k") == Completed(2)
    assert case.stored.attributes["calculated"] == 3


def test_whoever_changes_the_invoice_meanwhile_makes_the_commit_fail() -> None:
    case = Case()
    read = case.world.database.read

    def changed_after(table: Any, key: Any) -> Any:
        found = read(table, key)
        case.world.database.read = read
        case.change(lines=[])
        return found

    case.world.database.read = changed_after
    assert isinstance(case.run(1, "k"), Retried)
    assert (case.stored.version, "calculated" in case.stored.attributes, case.asked) == (2, False, [])
    case.world.clock.pass_(timedelta(minutes=1))
    assert case.run(1, "k") == Completed(2)
    assert (case.stored.attributes["gross"], case.asked) == ("0", [3])


def test_a_paid_invoice_takes_no_new_totals_but_an_old_job_about_it_is_done() -> None:
    case = Case()
    case.run(1)
    paid = case.change(status="paid")
    assert case.run(1) == Completed(1)
    outcome = case.run(paid)
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == "impossible-state"


def test_r4_2_a_calculation_waits_while_another_of_the_same_invoice_runs() -> None:
    case = Case()
    assert acquired(case.world.cache, "invoice/i", "another", timedelta(minutes=1))
    outcome = case.run(1)
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.CONTENDED
    assert case.stored.version == 1


@pytest.mark.parametrize("repeated", [False, True])
def test_i36_after_the_job_no_older_invoice_is_stored_in_the_cache(repeated: bool) -> None:
    case = Case()
    if repeated:
        case.run(1)  # and its own invalidation was lost, perhaps
    tag = invoice_tag("i")
    assert case.world.cache.fetch(tag, "ann", "reader", timedelta(minutes=1), None) == Miss()
    assert case.run(1) == Completed(1)
    lives = Lives(timedelta(minutes=1), timedelta(minutes=1))
    assert not case.world.cache.store(tag, "ann", "reader", Loaded("as it was", Version(1)), lives)


def test_a_notice_is_for_the_jobs_tenant_and_its_message_is_what_the_other_worker_reads() -> None:
    case = Case()
    payload = {"invoice_id": "i", "version": 1}
    text = body(
        job_type="recalculate-invoice", version=2, format=2, tenant="shop-1", idempotency_key="k", payload=payload
    )
    assert case.world.execute(text) == Completed(1)
    (posting,) = case.world.database.outbox.values()
    assert (posting.worker, posting.tenant) == ("notifications", "shop-1")
    message = read_message(posting.body)
    assert (message.job_type, message.version, message.idempotency_key) == ("notify-invoice", 1, "i/notice/2")


def test_r2_7_messages_of_before_the_rename_are_read_beside_the_new_ones() -> None:
    case = Case()
    old = body(job_type="recalculate-invoice", idempotency_key="k", payload={"invoice": "i", "revision": 1})
    assert case.world.execute(old) == Completed(1)
    assert case.run(1, "k") == Duplicate("completed")
    other = body(job_type="recalculate-invoice", idempotency_key="k", payload={"invoice": "i", "revision": 2})
    outcome = case.world.execute(other)
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == "idempotency-key-reused"
    assert case.world.database.view(record_id(SYSTEM, "recalculate-invoice", "k")).version == 1


def test_i46_a_worker_of_before_lets_the_new_version_wait() -> None:
    before = replace(recalculate_invoice, version=1, upgrades={})
    case = Case()
    case.world = World(replace(invoices.WORKER, jobs=(before,)))
    outcome = case.run(1)
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.NEWER_VERSION


def test_the_upgrade_leaves_what_it_does_not_know_to_the_schema() -> None:
    assert from_1({"invoice": "i", "revision": 1, "other": 2}) == {"invoice_id": "i", "version": 1, "other": 2}
