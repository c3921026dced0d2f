"""What is there before anything is sent: the orders, and what readers have cached about them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from local.cached import CachedTags
from local.situations import AMOUNT, CURRENCY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from local.situations import Order
    from local.stack import Stack


def seed(stack: Stack, orders: Iterable[Order]) -> None:
    """Put pending orders into the table, and each under its tags into the cache."""
    cache = CachedTags(stack.valkey.host, stack.valkey.port)
    for order in orders:
        item = {
            "order_id": order.order_id,
            "user_id": order.user,
            "amount": AMOUNT,
            "currency": CURRENCY,
            "payment_intent_id": order.intent,
            "status": "pending",
        }
        stack.clients.dynamodb.put_item(
            TableName=stack.outputs["TableOrders"],
            Item={**{name: {"S": value} for name, value in item.items()}, "version": {"N": "1"}},
        )
        for tag in order.tags:
            cache.fill(tag, json.dumps(item))
