"""What the workers `invoices` and `notifications` agree on: which message asks for the notice about an invoice.

Workers never import each other; both import this.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shared.message import Message, check_key
from shared.payload import Payload
from shared.strict_json import json_text

WORKER = "notifications"
JOB_TYPE = "notify-invoice"
VERSION = 1
InvoiceId = Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]  # what an idempotency key may hold
InvoiceVersion = Annotated[int, Field(ge=1)]


class NotifyInvoice(Payload):
    """Tell the user of the totals that an invoice has at this version."""

    invoice_id: InvoiceId
    version: InvoiceVersion


def notice(invoice_id: str, version: int) -> Message:
    """The message that asks for the notice; its key names invoice and version, so each version is told once.

    Raises:
        Malformed: the invoice's id is none that a key may hold.
    """
    payload = NotifyInvoice(invoice_id=invoice_id, version=version)
    key = check_key(f"{invoice_id}/notice/{version}")
    return Message(JOB_TYPE, VERSION, key, json_text(payload.model_dump(mode="json")))
