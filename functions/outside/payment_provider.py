"""The payment provider's API: charge once per payment intent, and ask what was charged."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import urlencode

from pydantic import BaseModel, Field, ValidationError

from shared.dependency import Dependency
from shared.errors import Ambiguous, DeadLetter, Rejected, Unavailable
from shared.gate import CircuitBreaker, RetryBudget
from shared.rate import Rate

if TYPE_CHECKING:
    from shared.dependency import Reply
    from shared.item import Item
    from shared.unit_of_work import UnitOfWork

PAYMENT_PROVIDER = Dependency(
    "payment-provider",
    timeout=timedelta(seconds=10),
    rate=Rate(50),  # half of what its contract allows: consoles of the shop call it, too
    concurrency=40,
    retries=RetryBudget(),
    breaker=CircuitBreaker(),
    key_lifetime=timedelta(hours=24),
)
CREATED, OK, DECLINED, IN_PROGRESS = 201, 200, 402, 409
Body = TypeVar("Body", bound=BaseModel)


class Charge(BaseModel):
    """A charge as the provider knows it."""

    charge_id: Annotated[str, Field(min_length=1, max_length=200)]
    payment_intent_id: str
    amount: str
    currency: str


class Declined(BaseModel):
    """The provider will not charge, for a reason that the customer should see."""

    code: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[a-z_]+$")]


class _Charges(BaseModel):
    charges: list[Charge]


def charge(work: UnitOfWork, order: Item) -> Charge | Declined:
    """Charge the order. The key names the payment intent: every job and attempt for it is one charge.

    Raises:
        Unavailable: nothing was charged.
        Ambiguous: it may have been charged.
        Rejected: the provider refuses the request for good.
    """
    intent = order.text("payment_intent_id")
    body = {
        "amount": order.text("amount"),
        "currency": order.text("currency"),
        "payment_intent_id": intent,
        "order_id": order.text("order_id"),
    }
    reply = work.call(PAYMENT_PROVIDER, "POST", "/v1/charges", body=body, headers={"Idempotency-Key": intent})
    if reply.status == DECLINED:
        return _read(Declined, reply)
    if reply.status == IN_PROGRESS:
        message = "The provider is still at an earlier request with this key."
        raise Ambiguous(message, dependency=PAYMENT_PROVIDER.name)
    if reply.status not in {CREATED, OK}:
        message = f"The provider answered {reply.status} to a charge."
        raise Rejected(message, dependency=PAYMENT_PROVIDER.name, status=reply.status)
    return _read(Charge, reply)


def is_forgotten(order: Item, now: datetime) -> bool:
    """Whether the order is older than the provider remembers keys: then it is asked before it charges.

    `created_at` (ISO, with its zone) is when the order came to be, and so its payment intent; what has none counts as young.

    Raises:
        DeadLetter: it is no such moment.
    """
    if "created_at" not in order:
        return False
    try:
        age = now - datetime.fromisoformat(order.text("created_at"))
    except (ValueError, TypeError) as error:
        reason = "impossible-state"
        raise DeadLetter(reason, "the order's `created_at` is no moment with its zone") from error
    return PAYMENT_PROVIDER.has_forgotten("POST", age)


def find_charge(work: UnitOfWork, payment_intent_id: str) -> Charge | None:
    """What was charged for the intent, if anything.

    Raises:
        Unavailable: no answer, or none that makes sense; asking again is harmless.
        Rejected: the provider refuses to tell.
    """
    query = urlencode({"payment_intent_id": payment_intent_id})
    try:
        reply = work.call(PAYMENT_PROVIDER, "GET", f"/v1/charges?{query}")
    except Ambiguous as error:  # it may have read, which is nothing
        raise Unavailable(str(error), dependency=PAYMENT_PROVIDER.name) from error
    if reply.status != OK:
        message = f"The provider answered {reply.status} to a question."
        raise Rejected(message, dependency=PAYMENT_PROVIDER.name, status=reply.status)
    charges = _read(_Charges, reply).charges
    return charges[0] if charges else None


def _read(model: type[Body], reply: Reply) -> Body:
    try:
        return model.model_validate(reply.body)
    except ValidationError as error:
        message = f"The provider answered {reply.status} with a body that is not what it documents."
        raise Ambiguous(message, dependency=PAYMENT_PROVIDER.name) from error
