"""What is there before anything is sent: the orders, and what readers have cached about them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from local.cached import CachedTags
from local.situations import AMOUNT, CURRENCY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from local.situations import Order
    from local.stack import Stack


def seed(stack: Stack, orders: Iterable[Order]) -> None:
    """Put pending orders into their tables, and each under its tags into the cache."""
    cache = CachedTags(stack.valkey.host, stack.valkey.port)
    for order in orders:
        place = {"user_id": order.user, "order_id": order.order_id}
        item = {
            **place,
            "amount": AMOUNT,
            "currency": CURRENCY,
            "payment_intent_id": order.intent,
            "status": "pending",
        }
        # Together, as everyone does who creates an order: the user's summary counts what is in the second table.
        writes = [("TableOrders", item), ("TableUserOrders", place)]
        stack.clients.dynamodb.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": stack.outputs[table], "Item": written(values)}} for table, values in writes
            ]
        )
        for tag in order.tags:
            cache.fill(tag, json.dumps(item))


def written(values: Mapping[str, str], version: int = 1) -> dict[str, Any]:
    """An item of the product's tables: its attributes, and the version that every change counts up."""
    return {**{name: {"S": value} for name, value in values.items()}, "version": {"N": str(version)}}
