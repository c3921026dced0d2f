"""Which workers are deployed, and which jobs they declare: infra, ops, local and tests read it; no function does, and it is never packaged."""

from __future__ import annotations

from functions import canary, imports, inventory, invoices, notifications, payments, users
from shared.job import JobTypes

WORKERS = (
    payments.WORKER,
    users.WORKER,
    inventory.WORKER,
    invoices.WORKER,
    notifications.WORKER,
    imports.WORKER,
    canary.WORKER,
)
JOB_TYPES = JobTypes.of(*(job for worker in WORKERS for job in worker.jobs))
WORKER_OF = {job.name: worker for worker in WORKERS for job in worker.jobs}
