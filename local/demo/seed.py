"""What is there before anything is sent: orders, what readers have cached about them, users, and invoices."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from local.demo.cached import CachedTags
from local.demo.situations import AMOUNT, CURRENCY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from local.demo.situations import Invoice, Order, Read, Situation
    from local.stack.running import Stack


def seed(stack: Stack, orders: Iterable[Order]) -> None:
    """Put pending orders into their tables, and each under its tags into the cache."""
    cache = CachedTags(stack.valkey.host, stack.valkey.port)
    for order in orders:
        place = {"user_id": order.user, "order_id": order.order_id}
        item = {
            **place,
            "amount": AMOUNT,
            "created_at": datetime.now(UTC).isoformat(),
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


def seed_users(stack: Stack, situations: Iterable[Situation]) -> None:
    """Put the users of situations that change one into their table, at their first version."""
    for situation in situations:
        if situation.read is not None and situation.read.changes:
            _put_user(stack, situation.read.user, 1)


def seed_invoices(stack: Stack, invoices: Iterable[Invoice]) -> None:
    """Put invoices into their table, each with one line of the demo's amount."""
    for invoice in invoices:
        item = invoice_item(invoice.invoice_id, invoice.user, invoice.version)
        if invoice.calculated:
            item |= {"calculated": {"N": str(invoice.version)}, "gross": {"S": AMOUNT}}
        stack.clients.dynamodb.put_item(TableName=stack.outputs["TableInvoices"], Item=item)


def invoice_item(invoice_id: str, user: str, version: int) -> dict[str, Any]:
    """An open invoice with one line, whose totals nobody has calculated."""
    line = {"description": "a thing", "unit_price": AMOUNT, "quantity": "1", "tax_rate": "0.19"}
    item = written({"invoice_id": invoice_id, "user_id": user, "status": "open", "currency": CURRENCY}, version)
    return {**item, "lines": {"L": [{"M": {name: {"S": value} for name, value in line.items()}}]}}


def change_user(stack: Stack, read: Read) -> None:
    """Change a user, as the part of the system does that sends the messages about it."""
    _put_user(stack, read.user, read.changes)


def _put_user(stack: Stack, user: str, version: int) -> None:
    item = {"user_id": user, "name": f"Version {version}", "email": f"{user}@example.com", "locale": "de"}
    stack.clients.dynamodb.put_item(TableName=stack.outputs["TableUsers"], Item=written(item, version))


def written(values: Mapping[str, str], version: int = 1) -> dict[str, Any]:
    """An item of the product's tables: its attributes, and the version that every change counts up."""
    return {**{name: {"S": value} for name, value in values.items()}, "version": {"N": str(version)}}
