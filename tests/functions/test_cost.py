"""What a successful job costs, counted: two DynamoDB calls besides its own reads, two exchanges with Redis."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from redis.connection import Connection

from shared.backends.aws import client
from shared.consumer import Consumer
from shared.runtime import connect
from shared.worker import Worker
from tests.aws import Database, create_queue
from tests.world import THINGS, Context, body, event, failures, note_job, record_of

if TYPE_CHECKING:
    from local.valkey import Valkey
    from shared.settings import Settings
    from tests.stack import Stack

pytestmark = pytest.mark.usefixtures("aws_endpoint")


@pytest.fixture
def settings(stack: Stack, valkey: Valkey) -> Settings:
    database = Database.create(THINGS)
    queue, dead = create_queue(client("sqs"))
    return replace(
        stack.settings,
        jobs_table=database.jobs_table,
        outbox_table=database.outbox_table,
        tables=database.tables,
        queues={"notes": queue},
        dead_letter_queues={"notes": dead},
        cache_port=str(valkey.port),
    )


def test_a_job_that_writes_one_item_costs_a_claim_a_transaction_and_two_exchanges_with_redis(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker("notes", jobs=(note_job(),))
    runtime = connect(worker, replace(settings, pace=1.0))
    consumer = Consumer(worker, runtime)
    warm = event(record_of(body(idempotency_key="warm"), "m0"))
    assert failures(consumer.handle(warm, Context())) == []  # opens the connections, which greet each other

    calls: Counter[str] = Counter()
    records: Any = runtime.execution.records
    records.layer.client.meta.events.register(
        "before-call.dynamodb", lambda model, **_: calls.update([model.name]), unique_id="count"
    )
    exchanges = []
    send: Any = Connection.send_packed_command

    def counted(self: Connection, command: Any, check_health: bool = True) -> Any:
        exchanges.append(command)
        return send(self, command, check_health)

    monkeypatch.setattr(Connection, "send_packed_command", counted)
    answer = consumer.handle(event(record_of(body(idempotency_key="k", payload={"thing": "b"}))), Context())
    assert failures(answer) == []
    assert calls == {"UpdateItem": 1, "TransactWriteItems": 1, "GetItem": 1}  # GetItem: the handler's own read
    assert len(exchanges) == 2

    calls.clear()
    exchanges.clear()
    consumer.handle(event(record_of(body(idempotency_key="k", payload={"thing": "b"}))), Context())
    assert calls == {"UpdateItem": 1}  # a duplicate costs the claim that tells it
    assert len(exchanges) == 2
