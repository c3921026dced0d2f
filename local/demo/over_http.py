"""The situations of the demo that come in over HTTP, as data: who asks for what, what is answered, and how it must end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from local.demo.client import Bearer, Request
from local.demo.situations import DONE, JobEnd, Order, Read

LATER = timedelta(seconds=8)
MUCH_LATER = timedelta(hours=1)  # it waits in the outbox, so that nothing of it is on the way when the demo ends
AT_ONCE = 5
ACCEPTED, OK = "202", "200"


@dataclass(frozen=True, slots=True)
class Asked:
    """A situation that begins with requests.

    Attributes:
        name: what is shown.
        requests: one after another.
        answers: of all requests, as status and code, the copies' included.
        order: what it is about; None where it is about no order.
        ends: status of the operation in the end; None where none is accepted.
        jobs: how its record must end.
        duplicates: requests that are told of the operation which another has begun.
        read: what the user reads of it.
        waits: whether the job is for later, and must not end before.
        without_relay: whether it is to end while the relay is off.
    """

    name: str
    requests: tuple[Request, ...]
    answers: tuple[str, ...]
    order: Order | None = None
    ends: str | None = "done"
    jobs: tuple[JobEnd, ...] = DONE
    duplicates: int = 0
    read: Read | None = None
    waits: bool = False
    without_relay: bool = False


def capture(order: Order, *, run_in: timedelta | None = None, bearer: Bearer = Bearer.OWN, copies: int = 1) -> Request:
    """The request to capture an order's payment."""
    payload = {"order_id": order.order_id, "payment_intent_id": order.intent}
    key = f"{order.order_id}/capture"
    return Request("POST", "/operations/capture-payment", order.user, key, payload, run_in, bearer, copies)


def about(order: Order, method: str, *, bearer: Bearer = Bearer.OWN) -> Request:
    """A request about the operation that was accepted for an order."""
    return Request(method, "/operations/{operation}", order.user, bearer=bearer)


def read_of(order: Order) -> Read:
    """What its user reads of an order that is paid meanwhile."""
    return Read(order.user, f"/me/orders/{order.order_id}", '"1"', '"2"')


NEW = Order("order-http", "pi_ok_http")
FIVE = Order("order-five", "pi_ok_five")
REUSED = Order("order-reused", "pi_ok_reused")
CANCELLED = Order("order-cancelled", "pi_ok_cancelled", ends="pending", charges=0, requests=0)
FOR_LATER = Order("order-later", "pi_ok_later")
FOREIGN = Order("order-foreign", "pi_ok_foreign")
FORGED = Order("order-forged", "pi_ok_forged", ends="pending", charges=0, requests=0)
UNRELAYED = Order("order-unrelayed", "pi_ok_unrelayed")
OTHER_PAYLOAD = Request(
    "POST",
    "/operations/capture-payment",
    REUSED.user,
    f"{REUSED.order_id}/capture",
    {"order_id": REUSED.order_id, "payment_intent_id": "pi_ok_another"},
)
SYNC = Request("POST", "/operations/sync-inventory", "ok-over-http", "ok-over-http/sync/1", {"user_id": "ok-over-http"})

ASKED = (
    Asked("relay-is-off", (capture(UNRELAYED),), (ACCEPTED,), UNRELAYED, without_relay=True),
    Asked("accepted-over-http", (capture(NEW),), (ACCEPTED,), NEW, read=read_of(NEW)),
    Asked(
        "posted-five-times-at-once",
        (capture(FIVE, copies=AT_ONCE),),
        (ACCEPTED,) * AT_ONCE,
        FIVE,
        duplicates=AT_ONCE - 1,
        read=read_of(FIVE),
    ),
    Asked(
        "same-key-other-payload",
        (capture(REUSED), OTHER_PAYLOAD),
        (ACCEPTED, "422 idempotency-key-reused"),
        REUSED,
    ),
    Asked(
        "cancelled-before-it-begins",
        (capture(CANCELLED, run_in=MUCH_LATER), about(CANCELLED, "DELETE")),
        (ACCEPTED, OK),
        CANCELLED,
        ends="cancelled",
        jobs=(JobEnd("cancelled", attempts=0),),
    ),
    Asked("for-later", (capture(FOR_LATER, run_in=LATER),), (ACCEPTED,), FOR_LATER, waits=True),
    Asked(
        "another-users-operation",
        (
            capture(FOREIGN),
            about(FOREIGN, "GET", bearer=Bearer.STRANGERS),
            about(FOREIGN, "DELETE", bearer=Bearer.STRANGERS),
        ),
        (ACCEPTED, "404 not-found", "404 not-found"),
        FOREIGN,
    ),
    Asked(
        "wrong-token",
        (capture(FORGED, bearer=Bearer.FORGED), capture(FORGED, bearer=Bearer.NONE)),
        ("401", "401"),
        FORGED,
        ends=None,
        jobs=(),
    ),
    Asked("inventory-over-http", (SYNC,), (ACCEPTED,), read=Read("ok-over-http", "/me/inventory", None, '"1"')),
)
