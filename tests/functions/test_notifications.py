"""The worker `notifications`: every file of events/notifications against the service's stand-in, and one notice a version."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions import invoices, notifications
from functions.invoice_notice import NotifyInvoice, notice
from functions.notifications import notify_invoice
from functions.views.invoices import INVOICES
from local.demo.seed import invoice_item
from local.demo.situations import EVENTS
from local.outside.notification_service import NotificationService
from shared.backends.memory.transport import MemoryTransport
from shared.dependency import Reply
from shared.errors import Ambiguous, Malformed
from shared.item import Stored
from shared.outcome import Completed, DeadLettered, Duplicate, Postponed, Retried
from tests.serving import serving
from tests.stack import Stack, new_stack
from tests.world import World, body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from local.stack.valkey import Valkey

FILES = EVENTS.parent / "notifications"
# By file: status and least attempts of the job, how many notices the service has sent, and the reason of its dead letter.
ENDS: dict[str, tuple[str, int, int, str | None]] = {
    "new-notice": ("completed", 1, 1, None),
    "same-message-three-times": ("completed", 1, 1, None),
    "service-is-slow": ("completed", 1, 1, None),
    "service-503-twice": ("completed", 1, 1, None),
    "service-500-once": ("completed", 1, 1, None),
    "service-rate-limits": ("completed", 1, 1, None),
    "service-sends-and-times-out": ("completed", 1, 1, None),
    "service-is-at-it": ("completed", 2, 1, None),
    "later-version-is-there": ("completed", 1, 0, None),
    "unknown-recipient": ("failed", 1, 0, None),
    "service-refuses": ("dead-lettered", 1, 0, "permanent"),
    "unknown-invoice": ("dead-lettered", 1, 0, "unknown-invoice"),
    "made-up-version": ("dead-lettered", 1, 0, "impossible-state"),
    "wrong-payload": ("", 0, 0, "invalid-payload"),
}


def bodies(name: str) -> list[str]:
    event = json.loads((FILES / f"{name}.json").read_text(encoding="utf-8"))
    return [record["body"] for record in event["Records"]]


@pytest.fixture(scope="module")
def ended(aws_endpoint: str, valkey: Valkey) -> Iterator[Stack]:
    """All situations, sent at once and run to their end."""
    with serving(NotificationService(0, quiet=True)) as service:
        stack = new_stack(valkey, service, worker=notifications.WORKER)
        for name in ENDS:
            payload = json.loads(bodies(name)[0])["payload"]
            if name not in {"unknown-invoice", "wrong-payload"}:
                version = 3 if name == "later-version-is-there" else 2
                item = {
                    **invoice_item(payload["invoice_id"], "ann", version),
                    "calculated": {"N": str(version)},
                    "gross": {"S": "36.18"},
                }
                stack.database.client.put_item(TableName=stack.settings.tables["invoices"], Item=item)
            for text in bodies(name):
                stack.send(text)
        stack.run(patience=timedelta(seconds=150))
        yield stack


def test_every_event_file_is_a_situation() -> None:
    assert {path.stem for path in FILES.glob("*.json")} == set(ENDS)


@pytest.mark.parametrize("name", ENDS)
def test_r4_1_a_notice_ends_as_it_should(ended: Stack, name: str) -> None:
    status, attempts, sent, _ = ENDS[name]
    message = json.loads(bodies(name)[0])
    items = ended.database.client.scan(TableName=ended.settings.jobs_table)["Items"]
    records = [i for i in items if "job_type" in i and i["idempotency_key"]["S"] == message["idempotency_key"]]
    assert [record["status"]["S"] for record in records] == ([status] if status else [])
    assert all(int(record["attempts"]["N"]) >= attempts for record in records)
    # Whether a failed call counts depends on whether the service served others meanwhile.
    failed = {"service-503-twice", "service-500-once", "service-rate-limits", "service-sends-and-times-out"}
    assert all("first_failure" in record for record in records if name in failed)
    ledger = ended.provider.notices.summary()
    mine = [each for each in ledger["notices"] if each["invoice_id"] == message["payload"]["invoice_id"]]
    assert len(mine) == sent
    if mine:
        assert mine[0] == {
            "key": f"invoice/{message['payload']['invoice_id']}/2",
            "invoice_id": message["payload"]["invoice_id"],
            "version": 2,
            "user_id": "ann",
            "gross": "36.18",
            "currency": "EUR",
        }


def test_the_dead_letter_queue_holds_exactly_the_hopeless_with_their_reasons(ended: Stack) -> None:
    expected = sorted(reason for *_, reason in ENDS.values() if reason)
    assert sorted(facts["reason"] for _, facts in ended.dead_letters()) == expected
    assert ended.mapping.errors == []


class Case:
    """Notices about one invoice, whose totals are of version 2, with a service in this process."""

    def __init__(self, answer: Callable[..., Reply]) -> None:
        self.world = World(notifications.WORKER, transport=MemoryTransport(answer))
        self.put(2)

    def put(self, version: int) -> None:
        item: Any = {"invoice_id": "i", "user_id": "ann", "currency": "EUR", "gross": "1.00", "calculated": version}
        self.world.database.items[INVOICES.name, ("i",)] = Stored(item, version)

    def run(self, version: int = 2) -> Any:
        return self.world.execute(notice("i", version).body(), left=timedelta(seconds=90))


def test_the_key_names_invoice_and_version_and_is_the_same_for_each_attempt() -> None:
    keys: list[str] = []

    def lost_once(method: str, path: str, content: Any, headers: Any) -> Reply:
        assert (method, path) == ("POST", "/v1/notices")
        keys.append(headers["Idempotency-Key"])
        if len(keys) == 1:
            message = "no answer"
            raise Ambiguous(message, dependency="notification-service")
        return Reply(200, {"notice_id": "n-1"})

    case = Case(lost_once)
    assert isinstance(case.run(), Postponed)  # whose fault the first failure is nobody can know
    case.world.clock.pass_(timedelta(minutes=10))
    assert case.run() == Completed(1)
    assert case.run() == Duplicate("completed")
    assert keys == ["invoice/i/2"] * 2


def test_a_notice_that_a_later_version_overtakes_is_not_sent() -> None:
    asked: list[object] = []
    case = Case(lambda *request: asked.append(request) or Reply(201, {"notice_id": "n-1"}))  # type: ignore[func-returns-value]
    case.put(3)
    assert case.run() == Completed(1)
    assert asked == []


@pytest.mark.parametrize("content", [None, {}, {"notice_id": ""}, {"notice_id": 7}, []])
def test_an_answer_that_is_not_what_the_service_documents_is_asked_for_again(content: object) -> None:
    outcome = Case(lambda *request: Reply(201, content)).run()
    assert isinstance(outcome, Retried)
    assert outcome.failure.dependency == "notification-service"


@pytest.mark.parametrize("status", [400, 401, 403, 422])
def test_a_refusal_is_final(status: int) -> None:
    outcome = Case(lambda *request: Reply(status, {})).run()
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == "permanent"


def test_both_workers_mean_the_same_message() -> None:
    message = notice("i", 7)
    assert message.job_type == notify_invoice.name
    assert message.version == notify_invoice.version
    assert notify_invoice.payload is NotifyInvoice
    made = notify_invoice.message(NotifyInvoice(invoice_id="i", version=7), key="i/notice/7")
    assert made == message


def test_an_invoice_whose_name_no_key_holds_asks_for_no_notice() -> None:
    with pytest.raises((Malformed, ValueError)):
        notice("an invoice", 1)


def test_r4_1_a_recalculation_has_its_user_told_once_of_each_version_through_the_outbox() -> None:
    bodies: list[Any] = []

    def service(method: str, path: str, content: Any, headers: Any) -> Reply:
        bodies.append(content)
        return Reply(201, {"notice_id": "n"})

    case = Case(service)
    line = {"unit_price": "0.10", "quantity": 3, "tax_rate": 0}
    item: Any = {"invoice_id": "i", "user_id": "ann", "status": "open", "currency": "EUR", "lines": [line]}
    case.world.database.items[INVOICES.name, ("i",)] = Stored(item, 4)
    calculating = World(invoices.WORKER)
    calculating.database = case.world.database
    for key in ("k1", "k2"):
        payload = {"invoice_id": "i", "version": 4}
        calculating.execute(body(job_type="recalculate-invoice", version=2, idempotency_key=key, payload=payload))
    (posting,) = case.world.database.outbox.values()
    assert [case.world.execute(posting.body, left=timedelta(seconds=90)) for _ in range(2)] == [
        Completed(1),
        Duplicate("completed"),
    ]
    assert bodies == [{"user_id": "ann", "invoice_id": "i", "version": 5, "gross": "0.30", "currency": "EUR"}]


def test_the_body_of_a_notice_is_what_a_plain_producer_would_send() -> None:
    payload = {"invoice_id": "i", "version": 2}
    text = body(job_type="notify-invoice", idempotency_key="i/notice/2", payload=payload)
    assert Case(lambda *request: Reply(201, {"notice_id": "n"})).world.execute(
        text, left=timedelta(seconds=90)
    ) == Completed(1)
