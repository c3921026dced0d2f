"""Every file of events/payments, through the real consumer on real stores: charged once, nothing lost."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions import payments
from functions.orders import ORDERS
from functions.payments import CapturePayment, capture_payment
from local.demo.situations import EVENTS, PAYMENTS, Situation
from shared.backends.memory.database import MemoryDatabase
from shared.dependency import Reply
from shared.errors import Ambiguous, DeadLetter, OutcomeUnknown, Rejected
from shared.item import Replace, Stored
from shared.job_record import SYSTEM, record_id
from shared.outcome import Completed, DeadLettered, Failed, Unknown
from shared.tag import Tag
from tests.world import START, FakeClock, World, unit_of_work

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.unit_of_work import UnitOfWork
    from tests.stack import Stack


@pytest.fixture(scope="module")
def ended(stack: Stack) -> Stack:
    """All situations, sent at once and run to their end."""
    for situation in PAYMENTS:
        if situation.order is not None:
            stack.seed(order_id=situation.order.order_id, payment_intent_id=situation.order.intent)
        for body in situation.bodies:
            stack.send(body)
    stack.run(patience=timedelta(seconds=120))
    return stack


def test_every_event_file_is_a_situation() -> None:
    assert {path.stem for path in EVENTS.glob("*.json")} == {situation.name for situation in PAYMENTS}


@pytest.mark.parametrize("situation", [s for s in PAYMENTS if s.order], ids=lambda situation: situation.name)
def test_an_order_ends_as_it_should_and_is_charged_at_most_once(ended: Stack, situation: Situation) -> None:
    assert situation.order is not None
    assert ended.order(situation.order.order_id)["status"] == situation.order.ends
    charges = ended.provider.ledger.charges_of(situation.order.intent)
    assert len(charges) == situation.order.charges


def test_the_dead_letter_queue_holds_exactly_the_hopeless_with_their_reasons(ended: Stack) -> None:
    expected = sorted((body, reason) for s in PAYMENTS for body, reason in zip(s.bodies, s.dead_letters, strict=False))
    assert sorted((body, facts["reason"]) for body, facts in ended.dead_letters()) == expected


def test_no_invocation_failed(ended: Stack) -> None:
    assert ended.mapping.errors == []


def test_every_job_that_was_accepted_has_ended(ended: Stack) -> None:
    items = ended.database.client.scan(TableName=ended.settings.jobs_table)["Items"]
    states = {item["idempotency_key"]["S"]: item["status"]["S"] for item in items}
    keys = {json.loads(body)["idempotency_key"] for s in PAYMENTS if s.order for body in s.bodies}
    assert keys <= set(states)
    assert set(states.values()) <= {"completed", "failed", "dead-lettered"}


def test_r2_3_a_lost_answer_was_settled_by_the_reconciling_job(ended: Stack) -> None:
    (lost,) = [s for s in PAYMENTS if s.name == "provider-charges-and-times-out"]
    key = json.loads(lost.bodies[0])["idempotency_key"]
    record = ended.database.client.get_item(
        TableName=ended.settings.jobs_table, Key={"id": {"S": record_id(SYSTEM, "capture-payment", key)}}
    )["Item"]
    assert record["status"]["S"] == "completed"
    assert record["last_failure"]["M"]["dependency"]["S"] == "payment-provider"
    assert json.loads(record["data"]["S"])["charge_id"].startswith("ch_")


ORDER = {
    "order_id": "o",
    "user_id": "u",
    "amount": "30.40",
    "currency": "EUR",
    "payment_intent_id": "pi",
    "status": "pending",
}


def work_on(order: dict[str, str] | None, answer: Callable[..., Reply]) -> UnitOfWork:
    database = MemoryDatabase(FakeClock())
    if order is not None:
        database.items["orders", ("o",)] = Stored(order, 1)
    return unit_of_work(answer, capture_payment.uses, database, worker="payments")


def never(*request: object) -> Reply:
    pytest.fail("the provider was called")


def capture(work: UnitOfWork) -> object:
    return capture_payment(CapturePayment(order_id="o", payment_intent_id="pi"), work)


def test_r2_1_a_paid_order_is_left_alone() -> None:
    work = work_on({**ORDER, "status": "paid", "charge_id": "ch_1"}, never)
    capture(work)
    assert [type(write).__name__ for write in work.staged.writes] == ["Unchanged"]


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        (None, "unknown-order"),
        ({**ORDER, "status": "failed"}, "impossible-state"),
        ({**ORDER, "payment_intent_id": "pi_2"}, "other-intent"),
    ],
)
def test_r2_4_what_no_attempt_can_help_is_not_charged(order: dict[str, str] | None, reason: str) -> None:
    with pytest.raises(DeadLetter) as caught:
        capture(work_on(order, never))
    assert caught.value.reason == reason


def test_r2_1_the_providers_key_names_the_payment_intent_not_the_job() -> None:
    keys = []

    def answer(method: str, path: str, body: object, headers: dict[str, str]) -> Reply:
        keys.append(headers["Idempotency-Key"])
        return Reply(201, {"charge_id": "ch", "payment_intent_id": "pi", "amount": "30.40", "currency": "EUR"})

    work = work_on(ORDER, answer)
    capture(work)
    (write,) = work.staged.writes
    assert isinstance(write, Replace)
    assert (write.table, write.attributes["status"], keys) == (ORDERS, "paid", ["pi"])
    assert work.staged.tags == (Tag("order/o"), Tag("cart/u"), Tag("order-summary/u"))


class Forgetful:
    """A provider that charges once for a key, and remembers it for a day; at first its answers are lost."""

    def __init__(self) -> None:
        self.world = World(payments.WORKER)
        self.world.transport.answer = self.answer
        self.charged: list[datetime] = []
        self.asked: list[str] = []
        self.answers_are_lost = True

    def seed(self, **more: Any) -> None:
        order = {"order_id": "o", "user_id": "u", "amount": "1", "currency": "EUR", "status": "pending"}
        self.world.database.items["orders", ("o",)] = Stored({**order, "payment_intent_id": "pi", **more}, 1)

    def answer(self, method: str, path: str, content: Any, headers: Any) -> Reply:
        del path, content, headers
        self.asked.append(method)
        charge = {"charge_id": "ch-1", "payment_intent_id": "pi", "amount": "1", "currency": "EUR"}
        if method == "GET":
            return Reply(200, {"charges": [charge] if self.charged else []})
        if all(self.world.clock.now() - moment >= timedelta(hours=24) for moment in self.charged):
            self.charged.append(self.world.clock.now())
        if self.answers_are_lost:
            message = "no answer"
            raise Ambiguous(message, dependency="payment-provider")
        return Reply(201, charge)

    def capture(self, key: str) -> Any:
        payload = CapturePayment(order_id="o", payment_intent_id="pi")
        return self.world.execute(capture_payment.message(payload, key).body())


def test_g5_a_later_capture_of_an_old_order_asks_first_since_the_provider_may_have_forgotten() -> None:
    case = Forgetful()
    case.seed(created_at=START.isoformat())
    assert isinstance(case.capture("k1"), Unknown)
    case.world.clock.pass_(timedelta(hours=25))  # its reconciling job waits, or is a dead letter
    case.answers_are_lost = False
    assert case.capture("k2") == Completed(1)
    assert (len(case.charged), case.asked) == (1, ["POST", "GET"])


def test_an_old_order_that_was_not_charged_is_charged_and_a_young_one_without_a_question() -> None:
    for age, asked in ((timedelta(hours=30), ["GET", "POST"]), (timedelta(hours=1), ["POST"])):
        case = Forgetful()
        case.answers_are_lost = False
        case.seed(created_at=(START - age).isoformat())
        assert case.capture("k") == Completed(1)
        assert (len(case.charged), case.asked) == (1, asked)


@pytest.mark.parametrize("moment", ["yesterday", "2026-01-01T00:00:00", 7])
def test_an_order_that_does_not_know_when_it_came_to_be_is_not_charged(moment: Any) -> None:
    case = Forgetful()
    case.seed(created_at=moment)
    outcome = case.capture("k")
    assert isinstance(outcome, DeadLettered)
    assert case.asked == []


def test_r2_3_no_answer_asks_for_reconciliation_under_a_key_of_this_attempt() -> None:
    def answer(*request: object) -> Reply:
        raise Ambiguous("no answer", dependency="payment-provider")

    with pytest.raises(OutcomeUnknown) as caught:
        capture(work_on(ORDER, answer))
    assert caught.value.reconcile.idempotency_key == "reconcile/attempt-token"
    assert json.loads(caught.value.reconcile.payload)["capture_key"] == "k"


@pytest.mark.parametrize(("status", "error"), [(409, OutcomeUnknown), (422, Rejected), (500, OutcomeUnknown)])
def test_what_the_provider_says_is_told_apart(status: int, error: type[Exception]) -> None:
    def answer(*request: object) -> Reply:
        if status >= 500:
            raise Ambiguous("500", dependency="payment-provider")
        return Reply(status, {})

    with pytest.raises(error):
        capture(work_on(ORDER, answer))


def test_a_declined_charge_fails_the_order_for_its_client() -> None:
    work = work_on(ORDER, lambda *request: Reply(402, {"code": "card_declined"}))
    assert capture(work) == Failed("card_declined", "the provider declined the charge")
    (write,) = work.staged.writes
    assert isinstance(write, Replace)
    assert write.attributes["status"] == "failed"


def test_an_answer_that_is_not_what_the_provider_documents_is_ambiguous() -> None:
    with pytest.raises(OutcomeUnknown):
        capture(work_on(ORDER, lambda *request: Reply(201, {"strange": True})))
