"""Telling users of their invoices: once for each version, by an outside service, on a queue where nobody else waits for it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import BaseModel

from functions import invoice_notice
from functions.invoice_notice import NotifyInvoice  # noqa: TC001 - the declaration reads it
from functions.outside.notification_service import NOTIFICATION_SERVICE, send_notice
from functions.views.invoices import INVOICES, calculated_at
from shared.consumer import consume
from shared.errors import DeadLetter
from shared.job import job
from shared.outcome import Failed
from shared.retry import Retry
from shared.worker import Worker

if TYPE_CHECKING:
    from shared.unit_of_work import UnitOfWork


class InvoiceNotified(BaseModel):
    """The notice of this version was sent; without a `notice_id` a later version's is, which says all that this one would."""

    invoice_id: str
    version: int
    notice_id: str | None = None


@job(
    invoice_notice.JOB_TYPE,
    version=invoice_notice.VERSION,
    timeout=timedelta(seconds=30),
    max_latency=timedelta(minutes=5),
    # A service that is down is worth waiting for; after an hour and a half people look.
    retry=Retry(max_attempts=8, base=timedelta(seconds=10), cap=timedelta(minutes=30)),
    uses=(INVOICES.read, NOTIFICATION_SERVICE),
)
def notify_invoice(payload: NotifyInvoice, work: UnitOfWork) -> InvoiceNotified | Failed:
    """Send the notice about the totals of this version; no lock, since the service's key names invoice and version."""
    invoice = work.read(INVOICES, payload.invoice_id)
    if invoice is None:
        reason = "unknown-invoice"
        raise DeadLetter(reason)
    calculated = calculated_at(invoice)
    if calculated < payload.version:
        reason = "impossible-state"
        raise DeadLetter(reason, f"its totals are of version {calculated}, and the notice is about {payload.version}")
    told = InvoiceNotified(invoice_id=payload.invoice_id, version=payload.version)
    if calculated > payload.version:
        return told
    body = {
        "user_id": invoice.text("user_id"),
        "invoice_id": payload.invoice_id,
        "version": payload.version,
        "gross": invoice.text("gross"),
        "currency": invoice.text("currency"),
    }
    sent = send_notice(work, f"invoice/{payload.invoice_id}/{payload.version}", body)
    if sent is None:
        return Failed("unknown_recipient", "the notification service does not know the user")
    return told.model_copy(update={"notice_id": sent.notice_id})


# The outside service is not ours, and slow: five at a time do not trouble it.
WORKER = Worker("notifications", jobs=(notify_invoice,), max_concurrency=5)
handler = consume(WORKER)
