"""Which workers are deployed: infra, local and tests read this line; no function does, and it is never packaged."""

from __future__ import annotations

from functions import canary, imports, inventory, invoices, notifications, payments, users

WORKERS = (
    payments.WORKER,
    users.WORKER,
    inventory.WORKER,
    invoices.WORKER,
    notifications.WORKER,
    imports.WORKER,
    canary.WORKER,
)
