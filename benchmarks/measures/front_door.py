"""Operations that the front door accepts for a second of CPU."""

from __future__ import annotations

import copy
import json
import time
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from benchmarks.declared import Figure, Measure, Sample, Store, Target
from benchmarks.peers import hand_wired_door
from functions import front_door, outbox_relay
from shared.backends.aws import client
from shared.settings import Settings
from tests.door import ACCEPT
from tests.world import Context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.bench import Bench
    from shared.rounds.relay import Relay

OPERATIONS = 40  # in a round
ACCEPTED = 202
PATH = "/operations/sync-inventory"
PEER = "hand-wired: Powertools' resolver, idempotent function, SQS"


def run(bench: Bench) -> Mapping[str, Sample]:
    """Time requests by the process's CPU clock, and what the relay does for each of ours after."""
    sqs = client("sqs")
    url = sqs.create_queue(QueueName="inventory")["QueueUrl"]
    told = Settings("jobs", "outbox", queues={"inventory": url}, dead_letter_queues={"inventory": url})
    ours = front_door.connect(told)
    peer = hand_wired_door.front_door(client("dynamodb"), sqs, "idempotency", url)
    relay = outbox_relay.connect(told)
    numbers = count()

    def spent(handle: Callable[[dict[str, Any], Any], dict[str, Any]]) -> float:
        requests = [request(next(numbers)) for _ in range(OPERATIONS)]
        begun = time.process_time()
        answers = [handle(each, Context()) for each in requests]
        seconds = time.process_time() - begun
        empty(sqs, url)
        if any(answer["statusCode"] != ACCEPTED for answer in answers):
            message = f"a request is not accepted: {answers[0]}"
            raise AssertionError(message)
        return seconds

    sides = {
        "ours": partial(spent, ours.handle),
        "peer": partial(spent, peer),
        "relay": partial(_relayed, relay, numbers),
    }
    found = bench.rounds(sides, bench.number(30, 5))
    whole = tuple(map(sum, zip(found["ours"], found["relay"], strict=True)))
    return {
        "accepted": Sample.of(found["ours"], found["peer"], lambda seconds: OPERATIONS / seconds),
        "accepted_and_sent": Sample.of(whole, found["peer"], lambda seconds: OPERATIONS / seconds),
    }


def request(number: int) -> dict[str, Any]:
    """A request of API Gateway's, with a key of its own."""
    event: dict[str, Any] = copy.deepcopy(ACCEPT)
    event["requestContext"]["http"]["path"] = event["rawPath"] = PATH
    event["headers"]["idempotency-key"] = f"k{number}"
    event["pathParameters"] = {"job_type": "sync-inventory"}
    event["body"] = json.dumps({"user_id": "user-1"})
    return event


def posted(number: int, worker: str) -> dict[str, Any]:
    """A record of the outbox's stream, as the front door's commit leaves it."""
    name = f"p{number}"
    body = {"job_type": "sync-inventory", "idempotency_key": name, "payload": {"user_id": "user-1"}}
    image = {
        "lane": {"S": name},
        "id": {"S": name},
        "worker": {"S": worker},
        "body": {"S": json.dumps(body)},
        "delay": {"N": "0"},
        "created_at": {"S": "2026-01-01T00:00:00+00:00"},
        "pending": {"S": "1"},
        "due_at": {"S": "2026-01-01T00:00:00+00:00"},
    }
    return {"eventSource": "aws:dynamodb", "eventName": "INSERT", "dynamodb": {"NewImage": image}}


def empty(sqs: Any, url: str) -> None:  # noqa: ANN401 - boto3 builds the class
    """Begin the queue anew: moto slows down with what waits there, and allows a purge once a minute."""
    sqs.delete_queue(QueueUrl=url)
    sqs.create_queue(QueueName=url.rpartition("/")[2])


def _relayed(relay: Relay, numbers: count[int]) -> float:
    event = {"Records": [posted(next(numbers), "inventory") for _ in range(OPERATIONS)]}
    begun = time.process_time()
    relay.relay(outbox_relay.read_stream(event, relay.clock.now()))
    relay.telemetry.flush()
    return time.process_time() - begun


MEASURE = Measure(
    name="front_door",
    title="Operations that the front door accepts",
    explanation=(
        "The function's handler is called with API Gateway's event for POST /operations/sync-inventory, each with a key of"
        " its own, and the CPU of its process is taken. Ours writes the operation and its message in one transaction;"
        " the relay sends the message later, in another function, whose CPU the second figure adds. The peer's idempotent"
        " function puts its record, sends to SQS and updates its record: a crash between the last two sends twice or, where"
        " it had sent nothing, blocks the key until its record expires. DynamoDB answers at once, SQS is moto's server."
    ),
    figures=(
        Figure(
            "accepted",
            "accepted operations",
            "operations a CPU second",
            PEER,
            Target(at_least=1.0),
            more_is_better=True,
        ),
        Figure(
            "accepted_and_sent",
            "the same, with the CPU of the relay that sends their messages",
            "operations a CPU second",
            PEER,
            more_is_better=True,
        ),
    ),
    run=run,
    stores=frozenset({Store.MOTO, Store.STUB}),
)
