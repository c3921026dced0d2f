"""Looks at a running stack and writes down what is to be seen; remembers what cannot be seen twice."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from functions.registry import WORKERS
from local.demo.account import ENDED
from local.demo.cached import CachedTags
from local.demo.consumer_log import ConsumerLog
from local.demo.observation import ChargeSeen, DeadLetter, JobSeen, Observation, OrderSeen, PostingSeen, Times
from local.demo.over_http import ASKED
from local.demo.situations import SITUATIONS
from local.demo.told import Told
from shared.clock import from_millis
from shared.naming import camel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from local.demo.client import Client
    from local.stack.running import Stack

ATTRIBUTE = "tahan.dead-letter"
WAITING: Final = "ApproximateNumberOfMessages"
IN_FLIGHT: Final = "ApproximateNumberOfMessagesNotVisible"
DELAYED: Final = "ApproximateNumberOfMessagesDelayed"
HIDDEN_FOR = 600  # seconds; seen once is enough, and receiving is the only way to see the next ones


class Observer:
    """Looks at a stack."""

    def __init__(self, stack: Stack, client: Client) -> None:
        self._stack = stack
        self._told = Told(client)
        orders = [situation.order for situation in (*SITUATIONS, *ASKED) if situation.order]
        self._tags = tuple(tag for order in orders for tag in order.tags)
        self._cache = CachedTags(stack.valkey.host, stack.valkey.port)
        self._log = ConsumerLog(stack.standin.child.program.log)
        self._begun = datetime.now(UTC)
        self._dead: dict[str, DeadLetter] = {}
        self._was_cached: frozenset[str] = frozenset()
        self._cached: frozenset[str] = frozenset()
        self._paid_without_redis: frozenset[str] = frozenset()
        self._done_without_relay: frozenset[tuple[str, str]] = frozenset()
        self.is_relay_on = True

    def know(self, operation: str, user: str) -> None:
        """Ask for an operation from now on, as its owner does."""
        self._told.know(operation, user)

    def look(self, *, is_last: bool = False) -> Observation:
        """One look; the last one asks anew for what had come to its end over HTTP."""
        depth = self._depths("Queue")
        dead = self._depths("DeadLetterQueue")
        for worker in WORKERS:
            self._read_dead_letters(self._stack.outputs[f"DeadLetterQueue{camel(worker.name)}"])
        orders = {
            item["order_id"]["S"]: OrderSeen(item["status"]["S"], item.get("charge_id", {}).get("S"))
            for item in self._items("TableOrders")
        }
        self._look_at_redis(orders)
        ledger = self._stack.provider.ledger()
        records = [item for item in self._items("JobsTable") if "job_type" in item]  # other things live there, too
        jobs = dict(_job(item) for item in records)
        if not self.is_relay_on:
            self._done_without_relay |= {job for job, seen in jobs.items() if seen.status in ENDED}
        self._told.look(is_last=is_last)
        return Observation(
            begun=self._begun,
            waiting=depth[WAITING] + depth[DELAYED],
            in_flight=depth[IN_FLIGHT],
            dead=sum(dead.values()),
            dead_letters=tuple(self._dead.values()),
            orders=orders,
            jobs=jobs,
            postings=tuple(_posting(item) for item in self._items("OutboxTable")),
            charges=_charges(ledger),
            notices=_notices(self._stack.notifications.ledger()),
            requests=ledger["requests_by_intent"],
            shortest_waits=ledger["shortest_waits"],
            provoked=frozenset(ledger["provoked"]),
            killed=len(ledger["killed"]),
            was_cached=self._was_cached,
            cached=self._cached,
            paid_without_redis=self._paid_without_redis,
            words=self._log.words(),
            times=dict(_times(item) for item in records if "run_at" in item and "ended_at" in item),
            operations=dict(self._told.operations),
            first_reads=dict(self._told.first_reads),
            reads=dict(self._told.reads),
            done_without_relay=self._done_without_relay,
        )

    def _items(self, output: str) -> list[dict[str, Any]]:
        table = self._stack.outputs[output]
        return self._stack.clients.dynamodb.scan(TableName=table, ConsistentRead=True)["Items"]

    def _look_at_redis(self, orders: Mapping[str, OrderSeen]) -> None:
        present = self._cache.present(self._tags)
        if present is not None:
            self._cached = present
            self._was_cached |= present
        elif not self._stack.valkey.is_running:
            self._paid_without_redis |= {name for name, order in orders.items() if order.status == "paid"}

    def _depths(self, kind: str) -> Counter[str]:
        """Messages on that queue of all workers together."""
        counts: Counter[str] = Counter()
        for worker in WORKERS:
            counts.update(self._depth(self._stack.outputs[kind + camel(worker.name)]))
        return counts

    def _depth(self, queue: str) -> dict[str, int]:
        answer = self._stack.clients.sqs.get_queue_attributes(
            QueueUrl=queue, AttributeNames=[WAITING, IN_FLIGHT, DELAYED]
        )
        return {str(name): int(count) for name, count in answer["Attributes"].items()}

    def _read_dead_letters(self, queue: str) -> None:
        answer = self._stack.clients.sqs.receive_message(
            QueueUrl=queue,
            MaxNumberOfMessages=10,
            VisibilityTimeout=HIDDEN_FOR,
            MessageAttributeNames=["All"],
        )
        for message in answer.get("Messages", []):
            attributes: Mapping[str, Any] = message.get("MessageAttributes", {})
            told = attributes.get(ATTRIBUTE, {}).get("StringValue", "{}")
            self._dead[message["MessageId"]] = dead_letter(message["Body"], told, datetime.now(UTC))


def dead_letter(body: str, dossier: str, now: datetime) -> DeadLetter:
    """A dead letter by what stands beside it (JSON); what cannot be read does not stand there."""
    told = json.loads(dossier)
    return DeadLetter(
        body,
        now,
        told.get("reason"),
        told.get("attempts"),
        told.get("error"),
        _time(told, "first"),
        _time(told, "last"),
    )


def _time(told: Mapping[str, Any], which: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(told[f"{which}_failure"])
    except (KeyError, ValueError, TypeError):
        return None
    return moment if moment.tzinfo is not None else None


def _job(item: Mapping[str, Any]) -> tuple[tuple[str, str], JobSeen]:
    job = (item["job_type"]["S"], item["idempotency_key"]["S"])
    return job, JobSeen(item["status"]["S"], int(item.get("attempts", {}).get("N", "0")))


def _times(item: Mapping[str, Any]) -> tuple[tuple[str, str], Times]:
    job, _ = _job(item)
    return job, Times(from_millis(int(item["run_at"]["N"])), datetime.fromisoformat(item["ended_at"]["S"]))


def _posting(item: Mapping[str, Any]) -> PostingSeen:
    body = json.loads(item["body"]["S"])
    job = (body["job_type"], body["idempotency_key"])
    return PostingSeen(job, body.get("payload", {}).get("order_id"), "sent_at" in item)


def _charges(ledger: Mapping[str, Any]) -> dict[str, tuple[ChargeSeen, ...]]:
    charges: dict[str, tuple[ChargeSeen, ...]] = defaultdict(tuple)
    for charge in ledger["charges"]:
        asked = charge["request"]
        seen = ChargeSeen(charge["charge_id"], asked["amount"], asked["currency"], asked["order_id"])
        charges[asked["payment_intent_id"]] += (seen,)
    return dict(charges)


def _notices(ledger: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    told: dict[str, tuple[int, ...]] = defaultdict(tuple)
    for notice in ledger["notices"]:
        told[notice["invoice_id"]] += (notice["version"],)
    return dict(told)
