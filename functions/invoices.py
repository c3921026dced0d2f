"""Recalculating invoices: totals follow the lines, an older job that comes late changes nothing, and the user is told once a version."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from functions import invoice_notice
from functions.invoice_notice import InvoiceId, InvoiceVersion, notice
from functions.invoice_totals import totals_of
from functions.views.invoices import INVOICES, calculated_at, invoice_tag
from shared.consumer import consume
from shared.errors import DeadLetter, RetryLater
from shared.job import job
from shared.payload import Payload
from shared.retry import Retry
from shared.worker import Worker

if TYPE_CHECKING:
    from shared.item import Item
    from shared.unit_of_work import UnitOfWork

ATTEMPTS = 5
OPEN = "open"


class RecalculateInvoice(Payload):
    """Bring the totals of an invoice to this version of it, or a later one."""

    invoice_id: InvoiceId
    version: InvoiceVersion


class InvoiceRecalculated(BaseModel):
    """The totals are those of the invoice at this version, which is the asked one or a later one."""

    invoice_id: str
    version: int
    gross: str


def from_1(payload: dict[str, Any]) -> dict[str, Any]:
    """Version 1 said `invoice` and `revision`."""
    names = {"invoice": "invoice_id", "revision": "version"}
    return {names.get(name, name): value for name, value in payload.items()}


@job(
    "recalculate-invoice",
    version=2,
    upgrades={1: from_1},
    timeout=timedelta(seconds=10),  # one read, one commit
    max_latency=timedelta(minutes=1),  # somebody looks at the invoice that was just changed
    # The change that a job announces is seconds away, if it is not there; after a minute it will not come.
    retry=Retry(max_attempts=ATTEMPTS, base=timedelta(seconds=2), cap=timedelta(seconds=30)),
    lock=lambda payload: f"invoice/{payload.invoice_id}",
    uses=(INVOICES.read_write,),
)
def recalculate_invoice(payload: RecalculateInvoice, work: UnitOfWork) -> InvoiceRecalculated:
    """Calculate the totals from the lines as they are now, write them if the invoice is still so, and have its user told.

    Totals are of the version that they are written with. A job for that version or an older one finds its work done.
    """
    invoice = work.read(INVOICES, payload.invoice_id)
    if invoice is None:
        reason = "unknown-invoice"
        raise DeadLetter(reason)
    if calculated_at(invoice) < payload.version:
        _demand_change(invoice, payload.version, work)
        version = invoice.version + 1
        invoice = work.update(invoice, **totals_of(invoice), calculated=version)
        work.enqueue(notice(payload.invoice_id, version), worker=invoice_notice.WORKER)
    calculated = calculated_at(invoice)
    work.invalidate(invoice_tag(payload.invoice_id), version=calculated)
    return InvoiceRecalculated(invoice_id=payload.invoice_id, version=calculated, gross=invoice.text("gross"))


def _demand_change(invoice: Item, version: int, work: UnitOfWork) -> None:
    """Return if the invoice is at that version by now, and may still be calculated.

    Raises:
        RetryLater: the change is not there yet.
        DeadLetter: it does not come, or the invoice is closed.
    """
    if invoice.version < version:
        message = f"the invoice is at version {invoice.version}, the job was sent for {version}"
        if work.attempt >= ATTEMPTS:
            reason = "change-not-there"
            raise DeadLetter(reason, message)
        raise RetryLater(message)
    if invoice["status"] != OPEN:
        reason = "impossible-state"
        raise DeadLetter(reason, f"the invoice is {invoice.text('status')}")


# Each is a read and a commit: as many as the table takes without noticing.
WORKER = Worker("invoices", jobs=(recalculate_invoice,), max_concurrency=10)
handler = consume(WORKER)
