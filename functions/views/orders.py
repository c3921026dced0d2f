"""What a user sees of orders: one of them, and the summary of all, counted from the orders themselves.

Whoever creates an order writes its place in `user-orders` in the same transaction.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING

from functions.orders import ORDERS
from functions.views.shown import ABSENT, Shown, chosen, versioned
from shared.caching.store import Loaded
from shared.errors import Refused
from shared.strict_json import json_text
from shared.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.item import ItemSource
    from shared.limits import Value

USER_ORDERS = Table("user-orders", key="user_id", sort_key="order_id")
FIELDS = ("order_id", "status", "amount", "currency", "charge_id", "failure")
MOST_ORDERS = 500  # that a summary counts: five batches of DynamoDB's, well within a request
_EXACT = Context(prec=100)


def load_order(source: ItemSource, user: str, order_id: str) -> Loaded:
    """An order of this user; another's is as absent as one that never was.

    Raises:
        Unavailable: the store did not answer.
    """
    stored = source.read(ORDERS, (order_id,))
    if stored is None or stored.deleted or stored.attributes.get("user_id") != user:
        return ABSENT
    return versioned(stored.version, chosen(stored.attributes, FIELDS))


def load_summary(source: ItemSource, user: str) -> Loaded:
    """How many orders the user has by status, and what was paid by currency. Without orders it is empty, not absent.

    It has no version of its own: its ETag is a hash of it. Each order is read consistently, so what is loaded after a
    commit counts it.

    Raises:
        Unavailable: the store did not answer.
        Refused: an order's amount is no number.
    """
    places = source.read_all(USER_ORDERS, user, MOST_ORDERS + 1)
    keys = [(str(place.attributes["order_id"]),) for place in places[:MOST_ORDERS]]
    orders = [stored.attributes for stored in source.read_many(ORDERS, keys).values()]
    mine = [order for order in orders if order.get("user_id") == user]
    paid: defaultdict[str, Decimal] = defaultdict(Decimal)
    for order in mine:
        if order.get("status") == "paid":
            currency = str(order.get("currency"))
            paid[currency] = _EXACT.add(paid[currency], _amount(order))
    body = json_text(
        {
            "orders": dict(Counter(str(order.get("status")) for order in mine)),
            "paid": {currency: f"{amount:f}" for currency, amount in paid.items()},
            "complete": len(places) <= MOST_ORDERS,
        }
    )
    return Loaded(Shown(f'"{hashlib.sha256(body.encode()).hexdigest()[:32]}"', body).text)


def _amount(order: Mapping[str, Value]) -> Decimal:
    try:
        amount = Decimal(chosen(order, ("amount",)).get("amount", "NaN"))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite():
        message = f"orders {order.get('order_id')}: its amount is no number."
        raise Refused(message)
    return amount
