"""What a successful job costs, counted: two DynamoDB calls besides its own reads, two exchanges with Redis."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis

from functions import invoices, users
from local.demo.seed import invoice_item
from shared.backends.aws import client
from shared.backends.memory.transport import MemoryTransport
from shared.backends.redis import cache_scripts, gate_scripts, leases
from shared.consumer import Consumer
from shared.dependency import Dependency, Reply
from shared.gate import CircuitBreaker, RetryBudget
from shared.rate import Rate
from shared.runtime import connect
from shared.worker import Worker
from tests.aws import Database, create_queue
from tests.redis_calls import exchanges
from tests.world import Context, body, event, failures, note_job, record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from local.stack.valkey import Valkey
    from shared.unit_of_work import UnitOfWork
    from tests.stack import Stack

pytestmark = pytest.mark.usefixtures("aws_endpoint")


@dataclass
class Costs:
    """A consumer on real stores, and what its last invocation has cost."""

    consumer: Consumer
    calls: Counter[str] = field(default_factory=Counter)
    exchanges: list[Any] = field(default_factory=list)

    def handle(self, text: str) -> None:
        self.calls.clear()
        self.exchanges.clear()
        assert failures(self.consumer.handle(event(record_of(text)), Context())) == []


@pytest.fixture
def known_scripts(valkey: Valkey) -> None:
    """The server knows every script, as it does soon after its start: by its first use in any process."""
    named = {**vars(leases), **vars(cache_scripts), **vars(gate_scripts)}
    with Redis(valkey.host, valkey.port) as redis:
        for name, text in named.items():
            if name.isupper() and isinstance(text, str) and "redis.call" in text and not name.startswith("_"):
                redis.script_load(text)


@pytest.fixture
def costs(stack: Stack, valkey: Valkey, known_scripts: None) -> Iterator[Callable[[Worker, str], Costs]]:
    """Counts for a worker; the message given is handled first, and opens the connections, which greet each other."""

    def of(worker: Worker, warm: str) -> Costs:
        database = Database.create(*(access.table for access in worker.accesses))
        queue, dead = create_queue(client("sqs"))
        settings = replace(
            stack.settings,
            jobs_table=database.jobs_table,
            outbox_table=database.outbox_table,
            tables=database.tables,
            queues={worker.name: queue},
            dead_letter_queues={worker.name: dead},
            cache_port=str(valkey.port),
            pace=1.0,
        )
        runtime = connect(worker, settings)
        counted = Costs(Consumer(worker, runtime))
        counted.handle(warm)
        records: Any = runtime.execution.records
        records.layer.client.meta.events.register(
            "before-call.dynamodb", lambda model, **_: counted.calls.update([model.name]), unique_id="count"
        )
        seen.enter_context(exchanges(counted.exchanges.append))
        return counted

    with contextlib.ExitStack() as seen:
        yield of


def test_a_job_that_writes_one_item_costs_a_claim_a_transaction_and_two_exchanges_with_redis(
    costs: Callable[[Worker, str], Costs],
) -> None:
    counted = costs(Worker("notes", jobs=(note_job(),)), body(idempotency_key="warm"))
    text = body(idempotency_key="k", payload={"thing": "b"})
    counted.handle(text)
    assert counted.calls == {"UpdateItem": 1, "TransactWriteItems": 1, "GetItem": 1}  # GetItem: the handler's own read
    assert len(counted.exchanges) == 2

    counted.handle(text)
    assert counted.calls == {"UpdateItem": 1}  # a duplicate costs the claim that tells it
    assert len(counted.exchanges) == 2


def test_a_refresh_of_the_cache_costs_no_exchange_beside_its_invalidation(
    costs: Callable[[Worker, str], Costs],
) -> None:
    def text(user: str) -> str:
        return body(job_type="refresh-user-cache", idempotency_key=user, payload={"user_id": user, "version": 1})

    counted = costs(users.WORKER, text("warm"))
    items: Any = counted.consumer.runtime.execution.units.items
    user = {"user_id": {"S": "u"}, "name": {"S": "N"}, "version": {"N": "1"}}
    items.client.put_item(TableName=items.tables["users"], Item=user)
    counted.handle(text("u"))
    assert counted.calls == {"UpdateItem": 1, "TransactWriteItems": 1, "GetItem": 1}
    assert len(counted.exchanges) == 1  # it has no lock


def test_a_calculation_costs_what_a_job_that_writes_one_item_does_and_its_notice_no_call(
    costs: Callable[[Worker, str], Costs],
) -> None:
    def text(invoice_id: str) -> str:
        payload = {"invoice_id": invoice_id, "version": 1}
        return body(job_type="recalculate-invoice", version=2, idempotency_key=invoice_id, payload=payload)

    counted = costs(invoices.WORKER, text("unknown"))
    items: Any = counted.consumer.runtime.execution.units.items
    items.client.put_item(TableName=items.tables["invoices"], Item=invoice_item("i", "ann", 1))
    counted.handle(text("i"))
    assert counted.calls == {"UpdateItem": 1, "TransactWriteItems": 1, "GetItem": 1}
    assert len(counted.exchanges) == 2

    counted.handle(text("i"))
    assert counted.calls == {"UpdateItem": 1}
    assert len(counted.exchanges) == 2


def test_a_call_within_bounds_costs_two_exchanges_more_however_many_bounds_there_are(
    costs: Callable[[Worker, str], Costs],
) -> None:
    dependency = Dependency(
        "shop",
        timeout=timedelta(seconds=5),
        rate=Rate(100, burst=10),
        concurrency=5,
        retries=RetryBudget(),
        breaker=CircuitBreaker(),
    )

    def buy(_payload: object, work: UnitOfWork) -> None:
        work.call(dependency, "POST", "/")

    worker = Worker("notes", jobs=(note_job(buy, uses=(dependency,)),))
    counted = costs(worker, body(idempotency_key="warm", payload={"thing": 1}))  # a dead letter, which costs no call
    object.__setattr__(
        counted.consumer.runtime.execution.units, "transport", MemoryTransport(lambda *_: Reply(200, None))
    )
    counted.handle(body(idempotency_key="k"))
    assert counted.calls == {"UpdateItem": 1, "TransactWriteItems": 1}
    assert len(counted.exchanges) == 2 + 2
