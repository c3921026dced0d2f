"""Counts what one successful job of each worker asks of AWS and of Redis: the product's own consumers on moto and a real Valkey."""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from functions import canary, inventory, invoices, notifications, payments, users
from local.demo.seed import invoice_item
from local.outside.inventory_system import InventorySystem
from local.outside.notification_service import NotificationService
from local.outside.payment_provider import Provider
from tests.aws_calls import seeing
from tests.redis_calls import exchanges
from tests.serving import serving
from tests.stack import Stack, new_stack
from tests.world import body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from local.outside.server import OutsideServer
    from local.stack.valkey import Valkey
    from shared.worker import Worker

COUNTS = Path(__file__).with_name("cost.json")
POLLS = 1000
WRITE_BYTES = 1024  # of one unit of DynamoDB; what a job reads fits into one of 4,096
BY_THE_MAPPING = ("ReceiveMessage", "DeleteMessage")


@dataclass(frozen=True, slots=True)
class Case:
    """A job of a worker: its type, its payload for a name, and what must be there before it."""

    worker: Worker
    outside: Callable[..., OutsideServer]
    job_type: str
    payload: Callable[[str], dict[str, Any]]
    seed: Callable[[Stack, str], None] = lambda stack, name: None  # noqa: ARG005 - nothing
    version: int = 1


def _order(stack: Stack, name: str) -> None:
    stack.seed(order_id=name, payment_intent_id=f"pi_ok_{name}")


def _user(stack: Stack, name: str) -> None:
    item = {"user_id": {"S": name}, "name": {"S": "N"}, "version": {"N": "1"}}
    stack.database.client.put_item(TableName=stack.settings.tables["users"], Item=item)


def _invoice(stack: Stack, name: str) -> None:
    calculated = {"calculated": {"N": "1"}, "gross": {"S": "36.18"}} if stack.worker is notifications.WORKER else {}
    item = {**invoice_item(name, "ann", 1), **calculated}
    stack.database.client.put_item(TableName=stack.settings.tables["invoices"], Item=item)


CASES = (
    Case(
        payments.WORKER,
        Provider,
        "capture-payment",
        lambda name: {"order_id": name, "payment_intent_id": f"pi_ok_{name}"},
        _order,
    ),
    Case(users.WORKER, Provider, "refresh-user-cache", lambda name: {"user_id": name, "version": 1}, _user),
    Case(inventory.WORKER, InventorySystem, "sync-inventory", lambda name: {"user_id": f"ok-{name}"}),
    Case(
        invoices.WORKER,
        NotificationService,
        "recalculate-invoice",
        lambda name: {"invoice_id": name, "version": 1},
        _invoice,
        version=2,
    ),
    Case(
        notifications.WORKER,
        NotificationService,
        "notify-invoice",
        lambda name: {"invoice_id": name, "version": 1},
        _invoice,
    ),
    Case(canary.WORKER, Provider, "smoke-probe", lambda _: {"run": "1", "ends": "completed"}),
)


@dataclass
class Counted:
    """What one job asked for.

    Attributes:
        write_units, read_units: of DynamoDB, on demand; a write in a transaction counts twice.
        parts: of transactions, without the job's own record.
        metrics: that CloudWatch bills for it, in a month in which it was written.
        exchanges: with Redis.
        log_bytes: that its function printed.
    """

    job_type: str
    calls: Counter[str] = field(default_factory=Counter)
    write_units: float = 0
    read_units: float = 0
    parts: int = 0
    exchanges: int = 0
    metrics: int = 0
    log_bytes: int = 0
    record_bytes: int = 0


@contextlib.contextmanager
def _counting(counted: Counted) -> Iterator[None]:
    def see(_service: str, operation: str, parameters: dict[str, Any]) -> None:
        if operation not in BY_THE_MAPPING:
            counted.calls[operation] += 1
        counted.parts += max(len(parameters.get("TransactItems", ())) - 1, 0)

    def sent(_command: object) -> None:
        counted.exchanges += 1

    with seeing(see), exchanges(sent):
        yield


def count(case: Case, valkey: Valkey) -> Counted:
    """Run one job of a case, and one before it, which opens the connections."""
    printed = io.StringIO()
    with serving(case.outside(0, quiet=True)) as outside, contextlib.redirect_stdout(printed):
        stack = new_stack(valkey, outside, worker=case.worker)
        for name in ("warm", "counted"):
            case.seed(stack, name)
        _run(stack, case, "warm")
        counted = Counted(case.job_type)
        before = len(printed.getvalue())
        with _counting(counted):
            _run(stack, case, "counted")
        said = printed.getvalue()[before:]
        counted.log_bytes, counted.metrics = len(said), _metrics(said)
        record = _record(stack, "counted")
    counted.record_bytes = _bytes(record)
    if record["status"]["S"] != "completed":
        message = (
            f"the job of {case.worker.name} is {record['status']['S']}: a job that does not complete is not counted"
        )
        raise AssertionError(message)
    _price(counted)
    return counted


def _run(stack: Stack, case: Case, name: str) -> None:
    text = body(job_type=case.job_type, version=case.version, idempotency_key=name, payload=case.payload(name))
    stack.send(text)
    for _ in range(POLLS):
        if stack.mapping.poll():
            return
    message = f"the message of {case.worker.name} does not come"
    raise AssertionError(message)


def _metrics(said: str) -> int:
    """How many metrics EMF lines are: each name under each set of dimensions."""
    found = set()
    for line in map(json.loads, said.splitlines()):
        for directive in line.get("_aws", {}).get("CloudWatchMetrics", []):
            found |= {(each["Name"], *names) for each in directive["Metrics"] for names in directive["Dimensions"]}
    return len(found)


def _record(stack: Stack, key: str) -> dict[str, Any]:
    items = stack.database.client.scan(TableName=stack.settings.jobs_table, ConsistentRead=True)["Items"]
    (found,) = [item for item in items if item.get("idempotency_key") == {"S": key}]
    record: dict[str, Any] = found
    return record


def _bytes(item: dict[str, Any]) -> int:
    """About what DynamoDB counts: names and values, without its notation."""
    return sum(len(name) + len(json.dumps(next(iter(value.values())))) for name, value in item.items())


def _price(counted: Counted) -> None:
    """Units of a claim, of the commit's transaction and of reads, by the size of the job's own record."""
    units = math.ceil(counted.record_bytes / WRITE_BYTES)
    counted.write_units += units * counted.calls["UpdateItem"] + counted.calls["PutItem"]
    counted.write_units += 2 * (units * counted.calls["TransactWriteItems"] + counted.parts)
    counted.read_units += counted.calls["GetItem"] + counted.calls["Query"] + counted.calls["BatchGetItem"]


def kept() -> dict[str, dict[str, Any]]:
    """What was counted last, by worker."""
    known: dict[str, dict[str, Any]] = json.loads(COUNTS.read_text(encoding="utf-8"))
    return known


def count_all(valkey: Valkey) -> dict[str, dict[str, Any]]:
    """Count every case, by worker."""
    found = {}
    for case in CASES:
        counted = count(case, valkey)
        found[case.worker.name] = {**asdict(counted), "calls": dict(sorted(counted.calls.items()))}
    return found
