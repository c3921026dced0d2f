"""Capturing payments: an order is charged once, whatever the number of messages, attempts and lost answers."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

from functions.orders import ORDERS, cart_tag, order_tag, summary_tag
from functions.outside.payment_provider import PAYMENT_PROVIDER, Charge, Declined, charge, find_charge, is_forgotten
from shared.commit import Reconciliation
from shared.consumer import consume
from shared.errors import Ambiguous, DeadLetter, OutcomeUnknown
from shared.job import job
from shared.job_record import SYSTEM, Status, record_id
from shared.outcome import Failed
from shared.payload import Payload
from shared.retry import Retry
from shared.strict_json import json_text
from shared.worker import Worker

if TYPE_CHECKING:
    from shared.item import Item
    from shared.unit_of_work import UnitOfWork

Name = Annotated[str, Field(min_length=1, max_length=200)]


class CapturePayment(Payload):
    """Charge the order by its payment intent."""

    order_id: Name
    payment_intent_id: Name


class ReconcilePayment(Payload):
    """Find out what became of a capture that got no answer.

    `capture_key` is its idempotency key, `capture_record` its job record where a client asked for it.
    """

    order_id: Name
    payment_intent_id: Name
    capture_key: Annotated[str, Field(min_length=1, max_length=255)]
    capture_record: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None


class PaymentCaptured(BaseModel):
    """The order is paid."""

    order_id: str
    charge_id: str


class NotCharged(BaseModel):
    """Nothing was charged; the capture runs again."""

    order_id: str


@job(
    "capture-payment",
    version=1,
    timeout=timedelta(seconds=30),
    max_latency=timedelta(minutes=2),
    retry=Retry(max_attempts=5, base=timedelta(seconds=10), cap=timedelta(minutes=15)),
    lock=lambda payload: f"order/{payload.order_id}",
    uses=(ORDERS.read_write, PAYMENT_PROVIDER),
    open_to_clients=True,
)
def capture_payment(payload: CapturePayment, work: UnitOfWork) -> PaymentCaptured | Failed:
    """Charge a pending order and mark it paid; an order that is paid already is left alone."""
    order = _order(payload.order_id, payload.payment_intent_id, work)
    if order["status"] == "paid":
        return _paid(order, work)
    try:
        # A capture of before, under another key, may have charged it so long ago that the provider forgot the intent's key.
        before = find_charge(work, payload.payment_intent_id) if is_forgotten(order, work.clock.now()) else None
        charged = before or charge(work, order)
    except Ambiguous as error:
        reconcile = ReconcilePayment(
            **payload.model_dump(), capture_key=work.idempotency_key, capture_record=work.record
        )
        message = reconcile_payment.message(reconcile, key=f"reconcile/{work.token}")
        raise OutcomeUnknown(str(error), reconcile=message) from error
    return _settled(order, charged, work)


@job(
    "reconcile-payment",
    version=1,
    timeout=timedelta(seconds=30),
    max_latency=timedelta(minutes=5),
    retry=Retry(max_attempts=8, base=timedelta(seconds=10), cap=timedelta(minutes=15)),
    lock=lambda payload: f"order/{payload.order_id}",
    uses=(ORDERS.read_write, PAYMENT_PROVIDER),
)
def reconcile_payment(payload: ReconcilePayment, work: UnitOfWork) -> PaymentCaptured | NotCharged | Failed:
    """Ask the provider what happened, and settle the order and the unknown capture in one commit.

    Not charged means that the capture may run again: the provider's key keeps even a late charge single.
    """
    order = _order(payload.order_id, payload.payment_intent_id, work)
    capture = payload.capture_record or record_id(SYSTEM, capture_payment.name, payload.capture_key)
    if order["status"] == "paid":
        captured = _paid(order, work)
        work.reconcile(Reconciliation(capture, Status.COMPLETED, captured.model_dump_json()))
        return captured
    found = find_charge(work, payload.payment_intent_id)
    if found is None:
        again = CapturePayment(order_id=payload.order_id, payment_intent_id=payload.payment_intent_id)
        work.enqueue(capture_payment.message(again, key=payload.capture_key, record=payload.capture_record))
        work.reconcile(Reconciliation(capture, Status.RETRYING))
        return NotCharged(order_id=payload.order_id)
    result = _settled(order, found, work)
    status = Status.COMPLETED if isinstance(result, PaymentCaptured) else Status.FAILED
    work.reconcile(Reconciliation(capture, status, _text(result)))
    return result


def _order(order_id: str, payment_intent_id: str, work: UnitOfWork) -> Item:
    """The order, if it may be charged by this intent.

    Raises:
        DeadLetter: it may not, and no later attempt can change that.
    """
    order = work.read(ORDERS, order_id)
    if order is None:
        reason = "unknown-order"
        raise DeadLetter(reason)
    if order["payment_intent_id"] != payment_intent_id:
        reason = "other-intent"
        raise DeadLetter(reason, "the order is to be paid by another payment intent")
    if order["status"] not in {"pending", "paid"}:
        reason = "impossible-state"
        raise DeadLetter(reason, f"the order is {order.text('status')}")
    return order


def _paid(order: Item, work: UnitOfWork) -> PaymentCaptured:
    """The result of an order that another job has paid; that job may not have come to its invalidation yet."""
    _invalidate(order, work)
    return PaymentCaptured(order_id=order.text("order_id"), charge_id=order.text("charge_id"))


def _invalidate(order: Item, work: UnitOfWork) -> None:
    user = order.text("user_id")
    work.invalidate(order_tag(order.text("order_id")), cart_tag(user), summary_tag(user))


def _settled(order: Item, charged: Charge | Declined, work: UnitOfWork) -> PaymentCaptured | Failed:
    _invalidate(order, work)
    if isinstance(charged, Declined):
        work.update(order, status="failed", failure=charged.code)
        return Failed(charged.code, "the provider declined the charge")
    work.update(order, status="paid", charge_id=charged.charge_id)
    return PaymentCaptured(order_id=order.text("order_id"), charge_id=charged.charge_id)


def _text(result: PaymentCaptured | Failed) -> str:
    return result.model_dump_json() if isinstance(result, PaymentCaptured) else json_text({"code": result.code})


WORKER = Worker("payments", jobs=(capture_payment, reconcile_payment), max_concurrency=20)
handler = consume(WORKER)
