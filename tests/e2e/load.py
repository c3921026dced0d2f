"""A steady load of probes, and its books: how each one ended, by which release, and how many effects there were in all."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from functions.canary import CANARIES, smoke_probe
from shared.job_record import SYSTEM, record_id
from tests.e2e.release import MARK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from local.stack.running import Stack

ENDS = "completed"
BATCH = 100  # records that are read at once
REST = 0.5


@dataclass(frozen=True, slots=True)
class Books:
    """What became of a load.

    Attributes:
        ended: how many probes have ended so, by the status of their record; "none" without one.
        releases: how many of the completed ran which release.
        effects: as the item counts them.
        attempts: of all probes.
    """

    sent: int
    ended: Counter[str]
    releases: Counter[str]
    effects: int
    attempts: int
    dead_letters: int

    @property
    def is_right(self) -> bool:
        """Nothing was lost, nothing happened twice."""
        return self.ended == Counter({ENDS: self.sent}) and self.effects == self.sent and not self.dead_letters


@dataclass
class Load:
    """Probes at a rate, as long as the block lasts."""

    stack: Stack
    run: str
    rate: float
    sent: int = 0
    failures: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send, name="load", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _send(self) -> None:
        while not self._over.wait(1 / self.rate):
            payload = {"run": self.run, "ends": ENDS}
            body = {
                "job_type": smoke_probe.name,
                "version": 1,
                "idempotency_key": self._key(self.sent),
                "payload": payload,
            }
            try:
                self.stack.clients.sqs.send_message(
                    QueueUrl=self.stack.outputs["QueueCanary"], MessageBody=json.dumps(body)
                )
            except Exception as error:  # noqa: BLE001 - a producer tries again: one key is one job
                self.failures.append(type(error).__name__)
                continue
            self.sent += 1

    def _key(self, number: int) -> str:
        return f"e2e/{self.run}/{number}"

    def wait(self, number: int, patience: timedelta) -> Books:
        """Look until so many have completed, or the time is up."""
        deadline = time.monotonic() + patience.total_seconds()
        books = self.books()
        while books.ended[ENDS] < number and time.monotonic() < deadline:
            time.sleep(REST)
            books = self.books()
        return books

    def books(self) -> Books:
        """How it stands."""
        sent = self.sent
        records = list(self._records(sent))
        ended = Counter(record["status"]["S"] for record in records)
        if missing := sent - len(records):
            ended["none"] = missing
        results = [json.loads(record["data"]["S"]) for record in records if record["status"]["S"] == ENDS]
        item = self._counted()
        return Books(
            sent=sent,
            ended=ended,
            releases=Counter("next" if result["canary"].endswith(MARK) else "first" for result in results),
            effects=int(float(item["count"]["N"])) if item.get("run") == {"S": self.run} else 0,
            attempts=sum(int(record["attempts"]["N"]) for record in records),
            dead_letters=self._dead_letters(),
        )

    def _records(self, number: int) -> Iterator[dict[str, Any]]:
        table = self.stack.outputs["JobsTable"]
        names = [record_id(SYSTEM, smoke_probe.name, self._key(place)) for place in range(number)]
        for start in range(0, number, BATCH):
            keys = [{"id": {"S": name}} for name in names[start : start + BATCH]]
            answer = self.stack.clients.dynamodb.batch_get_item(
                RequestItems={table: {"Keys": keys, "ConsistentRead": True}}
            )
            yield from answer["Responses"].get(table, [])

    def _counted(self) -> dict[str, Any]:
        table = self.stack.outputs["TableCanaries"]
        key = {CANARIES.key: {"S": ENDS}}
        answer = self.stack.clients.dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True)
        return dict(answer.get("Item", {}))

    def _dead_letters(self) -> int:
        answer = self.stack.clients.sqs.get_queue_attributes(
            QueueUrl=self.stack.outputs["DeadLetterQueueCanary"], AttributeNames=["ApproximateNumberOfMessages"]
        )
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])
