"""A stage, and workers that no product has: one for each shape that infra must deploy."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from infra.stage.identity import Identity
from infra.stage.settings import Stage
from shared.dependency import Dependency
from shared.files import Folder, Reach
from shared.job import Job, job
from shared.payload import Payload
from shared.table import Access, Table
from shared.worker import Worker

if TYPE_CHECKING:
    from shared.unit_of_work import UnitOfWork

IDENTITY = Identity(issuer="https://login.example.com", audience=("operations",))
STAGE = Stage(
    name="dev",
    endpoints={"payment-provider": "https://pay.example"},
    identity=IDENTITY,
)
ORDERS = Table("orders", "order_id")
LINES = Table("order-lines", "order_id", "line_id")
PROVIDER = Dependency("payment-provider")


class Nothing(Payload):
    """A payload without arguments."""


def a_job(
    name: str,
    *uses: Access | Dependency | Reach,
    timeout: timedelta = timedelta(seconds=30),
    parts: tuple[Job[Nothing, None], ...] = (),
) -> Job[Nothing, None]:
    """A job type that does nothing."""

    @job(name, timeout=timeout, max_latency=timedelta(minutes=20), uses=uses, parts=parts)
    def declared(payload: Nothing, work: UnitOfWork) -> None:
        del payload, work

    return declared


PAYING = Worker(
    "paying", (a_job("pay", ORDERS.read_write, PROVIDER), a_job("ask", ORDERS.read)), reserved_concurrency=20
)
READING = Worker("reading", (a_job("read", ORDERS.read),), batch_size=100, window=timedelta(seconds=5))
ORDERED = Worker("in-order", (a_job("write-line", LINES.read_write),), fifo=True, batch_concurrency=2)
FETCH = a_job("fetch", Folder("pages", "found").read_write, Folder("pages", "wanted").read)
SLOW = Worker(
    "slow",
    (a_job("crawl", timeout=timedelta(seconds=890), parts=(FETCH,)), FETCH),
    window=timedelta(seconds=300),
    max_concurrency=2,
)
ADDED = Worker("added", (a_job("add"),))
WORKERS = (PAYING, READING, ORDERED, SLOW)
