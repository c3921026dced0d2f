"""The drill of the guides: makes each trouble that people come with, and follows its page of `docs/runbooks` until it is over.

On the stack of the tests: moto, a real Valkey, the product's own consumer, and the real commands with the words of the page.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table as Shown

from functions import payments, users
from functions.orders import ORDERS
from functions.payments import capture_payment
from functions.users import ENTRY, user_tag
from infra.alarms.guides import COMES_WITH, Guide
from local.outside.payment_provider import Provider
from local.processes.children import Children
from local.stack.valkey import Valkey
from ops.exits import Exit
from shared.backends.redis.connection import Connection
from shared.backends.redis.leases import RedisStore
from shared.backends.sqs.attributes import to_event
from shared.caching.store import Loaded
from shared.claim import Granted
from shared.clock import SystemClock, random_token
from shared.delivery import read_event
from shared.errors import RetryLater
from shared.job import JobTypes
from shared.job_record import SYSTEM, operation_id, record_id
from shared.lease import Want
from shared.pipeline.run import read_run
from shared.retry import Retry
from shared.runtime import cache
from shared.tag import Version
from shared.telemetry import Silent
from tests.aws import CREDENTIALS
from tests.moto_server import MotoServer
from tests.operator_at_desk import Operator
from tests.serving import serving
from tests.stack import new_stack
from tests.world import body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.console import Console

    from shared.job import Job
    from shared.unit_of_work import UnitOfWork
    from shared.worker import Worker
    from tests.stack import Stack

FEW = 3
SHORT_LEASE = timedelta(seconds=3)


@dataclass(frozen=True, slots=True)
class Place:
    """Where drills are played: the real Valkey; moto's server is in the environment."""

    valkey: Valkey
    folder: Path

    @contextlib.contextmanager
    def stack(self, worker: Worker = payments.WORKER, visibility: int = 4) -> Iterator[Stack]:
        """A stack of its own."""
        with serving(Provider(0, quiet=True)) as provider:
            yield new_stack(self.valkey, provider, visibility=visibility, worker=worker)


def asked(key: str, order: str) -> str:
    """The message that asks for a capture."""
    payload = {"order_id": order, "payment_intent_id": f"pi_ok_{order}"}
    return body(job_type="capture-payment", idempotency_key=key, payload=payload)


def seed(stack: Stack, order: str, **more: str) -> None:
    """An order that waits for its capture."""
    stack.seed(order_id=order, payment_intent_id=f"pi_ok_{order}", **more)


def operation(key: str, job_type: str = capture_payment.name) -> str:
    """The operation of a job that came straight from the queue."""
    return operation_id(record_id(SYSTEM, job_type, key))


def broken(handler: Callable[[Any, UnitOfWork], Any], **declared: Any) -> Worker:
    """The worker of payments, with another handler of its captures: what a wrong deploy would be."""
    job: Job[Any, Any] = replace(capture_payment, handler=handler, **declared)
    return replace(payments.WORKER, jobs=(job, payments.reconcile_payment))


def backlog(place: Place) -> str:
    """Somebody paused the worker and forgot it; messages wait."""
    with place.stack() as stack:
        operator = Operator(stack, Guide.BACKLOG)
        operator.mapped.pause(stack.worker.name)  # the mapping was turned off, and nobody left a note
        for number in range(FEW):
            seed(stack, f"wait-{number}")
            stack.send(asked(f"wait-{number}", f"wait-{number}"))
        operator.work()
        told = operator.types("status")
        assert f"{stack.worker.name} {FEW} " in " ".join(told.split()), told
        assert "disabled" in told, told
        operator.types("resume")
        operator.work()
        told = operator.types("status <worker> --watch")
        assert f"{stack.worker.name} 0 0 0 " in " ".join(told.split()), told
        assert {stack.order(f"wait-{number}")["status"] for number in range(FEW)} == {"paid"}
        operator.is_through()
    return f"{FEW} jobs waited behind a mapping that was turned off, and are done"


def retry_storm(place: Place) -> str:
    """A deploy broke the handler: every attempt fails, until it is taken back."""
    is_broken = [True]

    def handler(payload: Any, work: UnitOfWork) -> object:
        if is_broken[0]:
            message = "the new version"
            raise RuntimeError(message)
        return capture_payment.handler(payload, work)

    worker = broken(handler, retry=Retry(max_attempts=4, base=timedelta(seconds=10), unknown_attempts=4))
    with place.stack(worker) as stack:
        operator = Operator(stack, Guide.RETRY_STORM)
        for number in range(FEW):
            seed(stack, f"storm-{number}")
            stack.send(asked(f"storm-{number}", f"storm-{number}"))
        stack.mapping.poll()  # each has failed once
        operator.types("status")
        told = operator.types("job show", id=operation("storm-0"))
        assert "retrying" in told, told
        assert "RuntimeError" in told, told
        operator.types("pause")
        operator.work()
        is_broken[0] = False  # it is repaired while nothing runs
        operator.types("resume")
        operator.work()
        told = operator.again("job show", id=operation("storm-0"))
        assert "done" in told, told
        assert {stack.order(f"storm-{number}")["status"] for number in range(FEW)} == {"paid"}
        operator.skips("dlq replay")  # none had died
        operator.is_through()
    return f"{FEW} jobs failed, waited for the repair with the attempts that they had left, and are done"


def leaked_lock(place: Place) -> str:
    """A process died and left its lock; the job that wants it waits, and goes on by itself."""
    with place.stack() as stack:
        operator = Operator(stack, Guide.LEAKED_LOCK)
        settings = stack.settings
        redis = Connection(settings.cache_host, int(settings.cache_port), tls=False, cluster=False)
        leases = RedisStore(redis)
        assert leases.acquire_all([Want("order/leaked", random_token(), SHORT_LEASE)]) == [True]
        seed(stack, "leaked")
        stack.send(asked("leaked", "leaked"))
        stack.mapping.poll()
        assert stack.order("leaked")["status"] == "pending"
        assert "order/leaked" in operator.types("locks list", start="order/")
        operator.types("locks show", key="order/leaked")
        operator.types("job show", id=operation("leaked"), ends=Exit.ABSENT)  # it waits, and has spent nothing
        time.sleep(SHORT_LEASE.total_seconds())
        operator.again("locks show", key="order/leaked", ends=Exit.ABSENT)
        operator.types("pause")  # the others shall have their turn first
        operator.types("resume")
        operator.work()
        assert stack.order("leaked")["status"] == "paid"
        operator.is_through()
    return "a lock that its process left ended by itself, and the job that waited is done at its first attempt"


def dead_letters_grow(place: Place) -> str:
    """Captures of orders that are not there die; half of the orders come, the rest are thrown away."""
    with place.stack() as stack:
        operator = Operator(stack, Guide.DEAD_LETTERS_GROW)
        for number in range(2 * FEW):
            stack.send(asked(f"dead-{number}", f"dead-{number}"))
        stack.run()
        (group,) = operator.reads("dlq groups")["groups"]
        assert (group["reason"], group["letters"]) == ("unknown-order", 2 * FEW), group
        signature = group["signature"]
        operator.types("dlq list", signature=signature)
        operator.types("dlq replay --group <signature> --dry-run", signature=signature)
        operator.types("dlq replay", signature=signature, ends=Exit.STOPPED)  # not repaired: the first ones die again
        for number in range(FEW):
            seed(stack, f"dead-{number}")
        letters = operator.reads("dlq list", signature=signature)["letters"]
        repaired = {operation(f"dead-{number}") for number in range(FEW)}
        arrival = Operator(stack, "dead-letter-arrival")  # the page of a single letter, to which this one leads
        for letter in letters:
            if letter["operation_id"] in repaired:
                arrival.again("dlq replay", id=letter["operation_id"])
        assert {stack.order(f"dead-{number}")["status"] for number in range(FEW)} == {"paid"}
        with contextlib.chdir(place.folder):
            operator.types("dlq discard", signature=signature)
            archived = Path("thrown.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(archived) == FEW
        assert operator.reads("dlq groups")["groups"] == []
        operator.is_through()
    return f"of {2 * FEW} letters {FEW} were replayed after their repair and are done, {FEW} are in an archive, none is left"


def stale_cache(place: Place) -> str:
    """Somebody changed a user past the job that refreshes; readers still see what was before."""
    with place.stack(users.WORKER) as stack:
        operator = Operator(stack, Guide.STALE_CACHE)
        made = replace(cache(stack.settings, Silent()), sample=0.0)

        def put(version: int) -> None:
            item: Mapping[str, Any] = {"user_id": {"S": "ann"}, "version": {"N": str(version)}}
            stack.database.client.put_item(TableName=stack.settings.tables["users"], Item=item)

        def seen() -> str | None:
            return made.read(user_tag("ann"), ENTRY, lambda: Loaded("new", Version(2)))

        put(1)
        made.read(user_tag("ann"), ENTRY, lambda: Loaded("old", Version(1)))
        refresh = body(
            job_type="refresh-user-cache", idempotency_key="ann/refresh/1", payload={"user_id": "ann", "version": 1}
        )
        stack.send(refresh)
        stack.run()
        put(2)
        before = seen()
        assert before != "new", before
        told = operator.types("job show", id=operation("ann/refresh/1", "refresh-user-cache"))
        assert '"version":1' in told.replace(" ", ""), told  # the table has 2: it was changed past its job
        told = operator.types("enqueue", user="ann", version="2")
        (name,) = [word for word in told.split() if word.startswith("op_")]
        operator.types("operation show", operation=name)
        assert seen() != before, "readers see what is there now"
        operator.is_through()
    return "a value that was changed past its job is refreshed by a job of the page, and readers see the new one"


def ran_twice(place: Place) -> str:
    """One message came three times, and another producer named the same intent in its own way."""

    def handler(payload: Any, work: UnitOfWork) -> object:
        if work.idempotency_key.startswith("shop-2/"):
            message = "the second producer's job waits for its next attempt"
            raise RetryLater(message, after=timedelta(seconds=3))
        return capture_payment.handler(payload, work)

    with place.stack(broken(handler)) as stack:
        operator = Operator(stack, Guide.RAN_TWICE)
        seed(stack, "twice")
        for _ in range(3):
            stack.send(asked("twice/capture", "twice"))
        stack.run()
        stack.send(asked("shop-2/twice", "twice"))
        stack.mapping.poll()
        told = operator.types("job show <first id>", first_id=operation("twice/capture"))
        assert "twice/capture" in told, told
        told = operator.types("job show <second id>", second_id=operation("shop-2/twice"))
        assert "shop-2/twice" in told, "two keys: two jobs of one intent"
        operator.types("job cancel", second_id=operation("shop-2/twice"))
        operator.work()
        charges = stack.provider.ledger.charges_of("pi_ok_twice")
        assert len(charges) == 1, charges
        operator.is_through()
    return "three messages of one key are one job; the job of the second key is ended; the provider has one charge"


def raced(place: Place) -> str:
    """Two jobs change one order at one time, and the lock keeps nobody out."""
    meanwhile: list[Callable[[], None]] = []

    def handler(payload: Any, work: UnitOfWork) -> object:
        order = work.read(ORDERS, payload.order_id)
        assert order is not None
        while meanwhile:
            meanwhile.pop()()
        work.update(order, status="paid", charge_id=f"{order['note']}")
        return None

    with place.stack(broken(handler, lock=None)) as stack:
        operator = Operator(stack, Guide.RACED)
        seed(stack, "race", note="before")
        names: Mapping[str, str] = {"#note": "note"}

        def change() -> None:
            """What another job commits in between."""
            stack.database.client.update_item(
                TableName=stack.settings.tables["orders"],
                Key={"order_id": {"S": "race"}},
                UpdateExpression="SET #note = :note ADD version :one",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={":note": {"S": "after"}, ":one": {"N": "1"}},
            )

        meanwhile.append(change)
        stack.send(asked("race/first", "race"))
        stack.run()
        stack.send(asked("race/second", "race"))
        stack.run()
        told = operator.types("job show <first id>", first_id=operation("race/first"))
        assert "Conflict" in told, told
        operator.types("job show <second id>", second_id=operation("race/second"))
        operator.types("locks list", start="order/")
        assert stack.order("race")["charge_id"] == "after", "nothing was written over: the loser read anew"
        operator.skips("dlq replay")  # nothing died of it
        operator.is_through()
    return "the job that lost the race wrote nothing, ran again on what was there, and its record says so"


def stuck(place: Place) -> str:
    """An attempt claimed its job and died; its message is hidden."""
    with place.stack(visibility=10) as stack:
        operator = Operator(stack, Guide.STUCK)
        seed(stack, "stuck")
        stack.send(asked("stuck", "stuck"))
        ends = _die_with_the_claim(stack, timedelta(seconds=6))
        told = operator.types("job show", id=operation("stuck"))
        assert "running" in told, told
        operator.types("job release", id=operation("stuck"), ends=Exit.REFUSED)  # it may be alive
        operator.types("status")
        time.sleep(max(0.0, ends - time.time()) + 0.1)
        operator.again("job release", id=operation("stuck"))
        operator.types("operation show", id=operation("stuck"))
        assert stack.order("stuck")["status"] == "paid"
        operator.skips("job cancel")  # it is wanted
        operator.is_through()
    return "the job of an attempt that died is released when that can no longer be alive, and is done"


def _die_with_the_claim(stack: Stack, left: timedelta) -> float:
    """Receive one message, claim its job for that long, and do nothing any more; give when the claim ends, by the wall clock."""
    answer = stack.sqs.receive_message(
        QueueUrl=stack.settings.queues[stack.worker.name], AttributeNames=["All"], MessageAttributeNames=["All"]
    )
    (message,) = answer["Messages"]
    record = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": to_event(message.get("MessageAttributes", {})),
        "eventSource": "aws:sqs",
    }
    (delivery,) = read_event({"Records": [record]})
    clock = SystemClock()
    now = clock.now()
    run = read_run(delivery, JobTypes.of(*stack.worker.jobs), now)
    answered = stack.database.records(clock).claim(run.claim(random_token(), now + left), now)
    assert isinstance(answered, Granted)
    return (now + left).timestamp()


TROUBLES: Mapping[Guide, Callable[[Place], str]] = {
    Guide.BACKLOG: backlog,
    Guide.RETRY_STORM: retry_storm,
    Guide.LEAKED_LOCK: leaked_lock,
    Guide.DEAD_LETTERS_GROW: dead_letters_grow,
    Guide.STALE_CACHE: stale_cache,
    Guide.RAN_TWICE: ran_twice,
    Guide.RACED: raced,
    Guide.STUCK: stuck,
}


@contextlib.contextmanager
def _somewhere() -> Iterator[Place]:
    """Moto's server and a Valkey of its own, and no way to an account."""
    before = dict(os.environ)
    server = MotoServer()
    server.start()
    os.environ.update(CREDENTIALS, AWS_ENDPOINT_URL=server.endpoint)
    try:
        with Children() as children, tempfile.TemporaryDirectory() as folder:
            valkey = Valkey(children, Path(folder))
            valkey.start()
            yield Place(valkey, Path(folder))
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.stop()


def guides(out: Console) -> None:
    """Play all of them, and show what came of each.

    Raises:
        AssertionError: a page does not lead out of its trouble.
    """
    table = Shown(title="troubles, each by its page of docs/runbooks", title_justify="left")
    for column in ("page", "people come with", "followed to its end", "s"):
        table.add_column(column)
    try:
        with _somewhere() as place:
            for guide, play in TROUBLES.items():
                begun = time.monotonic()
                told = play(place)
                table.add_row(guide.value, COMES_WITH[guide], told, f"{time.monotonic() - begun:.0f}")
    finally:
        out.print(table)
