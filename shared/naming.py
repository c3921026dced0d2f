"""How a declared name is spelled where hyphens cannot be: in CloudFormation's names and in those of schemas."""

from __future__ import annotations


def camel(name: str) -> str:
    """A declared name in one word: `payment-provider` is `PaymentProvider`."""
    return "".join(part.capitalize() for part in name.split("-"))
