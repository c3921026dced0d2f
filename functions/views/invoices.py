"""Invoices as they are kept and as a user sees them; what creates and changes them counts their version up.

The lines are in the invoice itself, so that one read sees them all at one version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from functions.views.shown import ABSENT, chosen, versioned
from shared.table import Table

if TYPE_CHECKING:
    from shared.caching.store import Loaded
    from shared.item import ItemSource
    from shared.limits import Value

INVOICES = Table("invoices", key="invoice_id")
FIELDS = ("invoice_id", "status", "currency", "net", "tax", "gross")
LINE_FIELDS = ("description", "unit_price", "quantity", "tax_rate")
TAX_FIELDS = ("rate", "net", "tax")


def load_invoice(source: ItemSource, user: str, invoice_id: str) -> Loaded:
    """An invoice of this user; another's is as absent as one that never was. Before it is calculated it has no totals.

    Raises:
        Unavailable: the store did not answer.
    """
    stored = source.read(INVOICES, (invoice_id,))
    if stored is None or stored.deleted or stored.attributes.get("user_id") != user:
        return ABSENT
    invoice = stored.attributes
    lists = {"lines": _list(invoice, "lines", LINE_FIELDS), "taxes": _list(invoice, "taxes", TAX_FIELDS)}
    return versioned(stored.version, {**chosen(invoice, FIELDS), **lists})


def invoice_tag(invoice_id: str) -> str:
    """The cache tag of an invoice."""
    return f"invoice/{invoice_id}"


def calculated_at(invoice: Mapping[str, Value]) -> int:
    """The version that its totals are of; 0 before the first calculation."""
    version = invoice.get("calculated")
    return version if isinstance(version, int) else 0


def _list(invoice: Mapping[str, Value], name: str, fields: tuple[str, ...]) -> list[dict[str, str]]:
    parts = invoice.get(name)
    if not isinstance(parts, Sequence) or isinstance(parts, str | bytes):
        return []
    return [chosen(part, fields) for part in parts if isinstance(part, Mapping)]
