"""Fairness between tenants: each message takes its tenant's turn on whatever way it comes to a standard queue."""

from __future__ import annotations

import json
from collections import Counter as Count
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest

from shared.backends.memory.queue import Kept, MemoryQueue
from shared.clock import Surroundings
from shared.errors import Malformed, NewerVersion, OutcomeUnknown
from shared.intake.request import Intake
from shared.job import JobTypes
from shared.job_record import LOST_AFTER, SYSTEM, record_id
from shared.limits import check_group
from shared.message import Message
from shared.outcome import Because, Completed, Postponed
from shared.producer import Producer, group_of, standard_group
from shared.rounds.relay import Relay
from shared.wire import parsing
from shared.wire.parsing import read_message
from tests.world import Counter, FakeClock, Note, World, body, note_job

if TYPE_CHECKING:
    from shared.unit_of_work import UnitOfWork

LONG = "jwt:https://login.example.com:" + "u" * 200


@pytest.mark.parametrize("tenant", ["a", "jwt:https://login.example.com:ann", "x" * 128])
def test_a_tenant_that_sqs_takes_is_its_own_group(tenant: str) -> None:
    assert group_of(tenant) == tenant


@pytest.mark.parametrize("tenant", [LONG, "with a blank", "é", "tab\t", "x" * 129, "\ud83d"])
def test_any_other_tenant_is_a_hash_that_sqs_takes_and_nobody_elses(tenant: str) -> None:
    check_group(group_of(tenant))
    assert group_of(tenant) != group_of(tenant + "x")


def test_a_group_that_was_asked_for_goes_before_the_tenant() -> None:
    assert standard_group("g", "t") == "g"
    assert standard_group(None, "t") == "t"
    assert standard_group(None, None) is None


def test_a_message_with_a_tenant_says_the_format_that_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    message = note_job().message(Note(thing="a"), key="k", tenant="shop-1")
    assert json.loads(message.body())["format"] == 2
    assert read_message(message.body()) == message
    assert "format" not in json.loads(note_job().message(Note(thing="a"), key="k").body())
    monkeypatch.setattr(parsing, "FORMAT", 1)
    with pytest.raises(NewerVersion):
        read_message(message.body())


@pytest.mark.parametrize("tenant", ["", "x" * 1025, 7])
def test_what_is_no_tenant_is_refused(tenant: object) -> None:
    with pytest.raises(Malformed, match="invalid-envelope"):
        read_message(body(format=2, tenant=tenant))


def group_after_sending(world: World) -> list[str | None]:
    """The groups with which the relay puts what is in the outbox on a standard queue."""
    queue = MemoryQueue(world.clock)
    relay = Relay(world.database, world.database, lambda _: queue, world.clock, Random(1), world.telemetry)  # noqa: S311 - repeatable
    relay.relay([posting for posting in world.database.outbox.values() if not posting.delay])
    return [message.group for message in queue.messages.values()]


@pytest.mark.parametrize("fifo", [False, True])
def test_the_producer_gives_the_tenant_where_no_group_is_named(fifo: bool) -> None:
    clock = FakeClock()
    queue = MemoryQueue(clock, fifo=fifo)
    producer = Producer(queue, clock, Random(1), Counter(), fifo)  # noqa: S311 - repeatable
    message = note_job().message(Note(thing="a"), key="k", tenant="shop-1")
    producer.enqueue(message, group="order/1" if fifo else None)
    producer.enqueue(note_job().message(Note(thing="a"), key="l", tenant="shop-1"), group="order/1")
    groups = [kept.group for kept in queue.messages.values()]
    assert groups == ["order/1" if fifo else "shop-1", "order/1"]


def test_a_relayed_message_keeps_its_place_of_its_own_on_a_fifo_queue() -> None:
    world = World.of(lambda payload, work: work.enqueue(Message("note", 1, "k2", '{"thing":"b"}')))
    world.execute(body(format=2, tenant="shop-1"))
    queue = MemoryQueue(world.clock, fifo=True)
    relay = Relay(world.database, world.database, lambda _: queue, world.clock, Random(1), world.telemetry)  # noqa: S311 - repeatable
    relay.relay(list(world.database.outbox.values()))
    ((name, kept),) = zip(world.database.outbox, queue.messages.values(), strict=True)
    assert kept.group == name


@pytest.mark.parametrize(
    ("message", "group"),
    [
        (Message("note", 1, "k2", '{"thing":"b"}'), "shop-1"),
        (Message("note", 1, "k2", '{"thing":"b"}', tenant="shop-2"), "shop-2"),
    ],
)
def test_a_job_that_a_handler_enqueues_is_its_tenants_unless_it_names_another(message: Message, group: str) -> None:
    world = World.of(lambda payload, work: work.enqueue(message))
    assert world.execute(body(format=2, tenant="shop-1")) == Completed(1)
    assert group_after_sending(world) == [group]


def test_a_reconciling_job_is_its_tenants() -> None:
    def ask(payload: Note, work: UnitOfWork) -> object:
        message = "who knows"
        raise OutcomeUnknown(message, reconcile=Message("note", 1, "k2", '{"thing":"b"}'))

    world = World.of(ask)
    world.execute(body(format=2, tenant="shop-1"))
    assert group_after_sending(world) == ["shop-1"]


def door_of(world: World) -> Intake:
    here = Surroundings(world.clock, Random(1), Counter())  # noqa: S311 - repeatable
    return Intake(JobTypes.of(*world.worker.jobs), {"note": "notes"}, world.database, world.database, here)


@pytest.mark.parametrize("owner", ["jwt:iss:ann", LONG])
def test_a_clients_job_is_its_owners_also_when_it_is_sent_anew(owner: str) -> None:
    world = World.of()
    door_of(world).accept(owner, "note", "k", '{"thing":"a"}')
    world.clock.pass_(LOST_AFTER + timedelta(hours=1))
    world.rescue_all()
    assert group_after_sending(world) == [group_of(owner)] * 2


def test_a_rescued_job_of_the_system_has_no_tenant() -> None:
    def busy(payload: Note, work: UnitOfWork) -> object:
        message = "not now"
        raise ConnectionError(message)

    world = World.of(busy)
    world.execute(body())
    world.clock.pass_(LOST_AFTER + timedelta(hours=1))
    world.rescue_all()
    assert group_after_sending(world) == [None]


@pytest.mark.parametrize(
    ("text", "received", "group"),
    [
        (body(format=2, tenant="shop-1"), None, "shop-1"),
        (body(format=2, tenant="shop-1"), "g", "g"),
        (body(), None, None),
        ("no JSON", None, None),
    ],
)
def test_a_message_that_is_sent_anew_keeps_its_turn(text: str, received: str | None, group: str | None) -> None:
    world = World.of()
    nearly_too_often = {"ApproximateReceiveCount": str(world.worker.max_receive_count)}
    delivery = world.delivery(text, group=received, system=nearly_too_often)
    assert world.runtime.settlement.settle(delivery, Postponed(timedelta(0), Because.HELD))
    assert group_after_sending(world) == [group]


def test_i43_a_tenant_owns_nothing() -> None:
    world = World.of()
    owner = "jwt:iss:ann"
    world.execute(body(format=2, tenant=owner))
    record = record_id(SYSTEM, "note", "k1")
    assert world.database.view(record).names["owner"] == SYSTEM
    assert door_of(world).look(owner, f"op_{record}") is None


def longest_wait(tenants: bool) -> float:
    """Seconds that a quiet shop's message waits at the most, while a loud one has sent 1,000; four jobs a second are done."""
    clock = FakeClock()
    queue = MemoryQueue(clock, visibility=timedelta(minutes=10))
    producer = Producer(queue, clock, Random(1), Counter())  # noqa: S311 - repeatable

    def send(shop: str, number: int) -> None:
        message = note_job().message(Note(thing=shop), key=f"{shop}/{number}", tenant=shop if tenants else None)
        producer.enqueue(message)

    def fairly(visible: list[Kept]) -> None:
        """As SQS does, in short: whose messages are in flight most comes last; what has no group is a tenant by itself."""
        busy = Count(kept.group for kept in queue.messages.values() if kept.visible_at > clock.monotonic())
        visible.sort(key=lambda kept: busy[kept.group] if kept.group is not None else 0)

    for number in range(1000):
        send("loud", number)
    waits: list[float] = []
    sent: dict[str, float] = {}
    flying: list[str] = []
    for second in range(300):
        if second % 10 == 0 and second < 100:
            send("quiet", second)
            sent[f"quiet/{second}"] = clock.monotonic()
        for receipt in flying:
            queue.delete(receipt)
        flying = []
        for _ in range(4):
            for record in queue.receive(1, order=fairly):
                key = json.loads(record["body"])["idempotency_key"]
                flying.append(record["receiptHandle"])
                if key in sent:
                    waits.append(clock.monotonic() - sent[key])
        clock.pass_(timedelta(seconds=1))
    assert len(waits) == 10
    return max(waits)


def test_i43_a_tenant_at_a_hundred_times_the_load_keeps_nobody_else_waiting() -> None:
    assert longest_wait(tenants=False) > 100
    assert longest_wait(tenants=True) <= 1
