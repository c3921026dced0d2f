"""Orders: their table, and the cache tags of what is read of them. Who changes an order and who reads it agree here."""

from __future__ import annotations

from shared.table import Table

ORDERS = Table("orders", key="order_id")


def order_tag(order_id: str) -> str:
    """The cache tag of an order."""
    return f"order/{order_id}"


def summary_tag(user: str) -> str:
    """The cache tag of the summary of a user's orders."""
    return f"order-summary/{user}"


def cart_tag(user: str) -> str:
    """The cache tag of a user's cart, which a shop keeps beside this stack: a paid order empties it."""
    return f"cart/{user}"
