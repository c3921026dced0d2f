"""What Lambda and SQS do to a running job: time that runs out, messages that come back while it works, frozen processes."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from redis import Redis

from functions import payments
from local.invoking.event_source_mapping import EventSourceMapping
from shared.backends.redis.keys import lease_key
from shared.consumer import Consumer
from shared.errors import RetryLater
from shared.job_record import SYSTEM, Status, record_id
from shared.outcome import Completed
from shared.runtime import connect
from tests.aws import CREDENTIALS
from tests.faults.jobs import BREWS, CRASHING
from tests.faults.lives import Life
from tests.modes import Mode, chosen
from tests.stack import new_stack
from tests.waiting import until
from tests.world import THINGS, Context, Note, World, body

if TYPE_CHECKING:
    from local.outside.payment_provider import Provider
    from local.stack.valkey import Valkey
    from shared.unit_of_work import UnitOfWork
    from tests.stack import Stack

TENTHS = range(1, 11)
BREWING = 2.0  # seconds that a brew takes at the tests' pace


def brews(stack: Stack, pot: str) -> tuple[int, int]:
    """How often a pot was brewed, and its version."""
    item = stack.database.items.read(BREWS, (pot,))
    if item is None:
        return 0, 0
    times = item.attributes["times"]
    assert isinstance(times, int)
    return times, item.version


def send_brew(stack: Stack, pot: str) -> None:
    stack.send(json.dumps({"job_type": "brew", "idempotency_key": pot, "payload": {"pot": pot}}))


def view(stack: Stack, job_type: str, key: str) -> Any:
    return stack.database.records(stack.runtime.clock).view(record_id(SYSTEM, job_type, key))


def life_of(stack: Stack, **more: Any) -> Life:
    environ = {**CREDENTIALS, "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
    return Life("consume", stack.settings, environ, mode=chosen(), **more)


def test_bat_16_a_batch_that_takes_longer_than_its_visibility_is_prolonged_and_delivered_once(
    valkey: Valkey, faults_provider: Provider
) -> None:
    stack = new_stack(valkey, faults_provider, visibility=1, worker=CRASHING)
    pots = ["a", "b", "c"]
    for pot in pots:
        send_brew(stack, pot)
    batches: list[list[int]] = []
    consumer = Consumer(stack.runtime.worker, stack.runtime)

    def handle(event: dict[str, Any], context: Any) -> Any:
        batches.append([int(record["attributes"]["ApproximateReceiveCount"]) for record in event["Records"]])
        began = time.monotonic()
        answer = consumer.handle(event, context)
        assert time.monotonic() - began > 1.5  # the witness: longer than the queue's visibility
        return answer

    timeout = stack.runtime.worker.function_timeout
    url = stack.settings.queues["payments"]
    mappings = [EventSourceMapping(stack.sqs, url, handle, lambda: Context(timeout), 3) for _ in range(2)]
    deadline = time.monotonic() + 60

    def poll(mapping: EventSourceMapping) -> None:
        while time.monotonic() < deadline and any(brews(stack, pot) == (0, 0) for pot in pots):
            mapping.poll()
            time.sleep(0.1)

    with ThreadPoolExecutor() as pool:
        list(pool.map(poll, mappings))
    assert [brews(stack, pot) for pot in pots] == [(1, 1)] * 3
    assert [count for batch in batches for count in batch] == [1, 1, 1]  # nobody else ever got one of them


def test_i19_a_job_without_a_heartbeat_whose_message_comes_back_is_held_and_the_copy_costs_no_attempt(
    valkey: Valkey, faults_provider: Provider
) -> None:
    stack = new_stack(valkey, faults_provider, visibility=1)
    stack.seed(order_id="slow", payment_intent_id="pi_slow_comes_back")
    payload = {"order_id": "slow", "payment_intent_id": "pi_slow_comes_back"}
    stack.send(json.dumps({"job_type": "capture-payment", "idempotency_key": "slow", "payload": payload}))
    held = threading.Event()
    release = threading.Event()
    commit = stack.runtime.execution.records.commit

    class Slow:
        def __getattr__(self, name: str) -> Any:
            return getattr(stack.runtime.execution.records, name)

        def commit(self, *arguments: Any) -> None:
            held.set()
            release.wait(30)
            commit(*arguments)

    slow = connect(payments.WORKER, stack.settings)
    object.__setattr__(slow.execution.attempts, "records", Slow())
    url = stack.settings.queues["payments"]
    timeout = timedelta(seconds=60)
    first = EventSourceMapping(stack.sqs, url, Consumer(slow.worker, slow).handle, lambda: Context(timeout))
    running = threading.Thread(target=first.poll)
    running.start()
    assert held.wait(30)
    polled = 0
    deadline = time.monotonic() + 30
    while not polled and time.monotonic() < deadline:  # the witness: it was delivered while it ran
        polled += stack.mapping.poll()
        time.sleep(0.2)
    assert polled
    release.set()
    running.join(60)
    stack.run()
    record = view(stack, "capture-payment", "slow")
    assert (record.status, record.attempts) == (Status.COMPLETED, 1)
    assert stack.order("slow")["version"] == "2"
    assert stack.dead_letters() == []


def test_ide_06_copies_of_a_slow_job_reach_no_dead_letter_queue_however_often_they_are_received() -> None:
    """Fifty seconds of work, a copy every five, and a queue that takes messages away after few receives."""
    inside: list[World] = []

    def handler(payload: Note, work: UnitOfWork) -> object:
        world = inside[0]
        if work.attempt == 1 and not copies:
            for number in range(10):
                world.clock.pass_(timedelta(seconds=5))
                count = str(number % 4 + 1)
                copies.append(world.run(body(), system={"ApproximateReceiveCount": count}))
        return None

    copies: list[Any] = []
    world = World.of(handler, timeout=timedelta(seconds=55), max_latency=timedelta(minutes=5), lock_wait=timedelta(0))
    inside.append(world)
    runtime = world.runtime
    outcome = runtime.execution.execute(world.delivery(body()), world.clock.now() + timedelta(seconds=65))
    assert outcome == Completed(1)
    assert len(copies) == 10
    assert {type(copy).__name__ for copy, _ in copies} == {"Postponed"}
    assert not world.queue.dead
    assert world.database.view(record_id(SYSTEM, "note", "k1")).attempts == 1
    late, acknowledged = world.run(body())
    assert (type(late).__name__, acknowledged) == ("Duplicate", True)


@pytest.mark.parametrize("crash", [False, True])
def test_ide_15_an_effect_before_a_step_that_fails_twice_is_there_once(crash: bool) -> None:
    class Crash(BaseException):
        pass

    def handler(payload: Note, work: UnitOfWork) -> object:
        work.create(THINGS, id="ledger", text="row")
        if work.attempt < 3:
            raise Crash if crash else RetryLater("the second step failed")
        return None

    world = World.of(handler)
    for _ in range(2):
        if crash:
            with pytest.raises(Crash):
                world.run(body())
        else:
            world.run(body())
        assert world.thing("ledger") is None
        world.clock.pass_(timedelta(minutes=5))
    assert world.run(body()) == (Completed(3), True)
    assert world.database.read(THINGS, ("ledger",)).version == 1


def test_lck_11_a_process_frozen_between_two_invocations_works_on_when_it_thaws_and_renews_nothing_meanwhile(
    valkey: Valkey, faults_provider: Provider
) -> None:
    stack = new_stack(valkey, faults_provider, visibility=3, worker=CRASHING)
    send_brew(stack, "first")
    process = life_of(stack).start()
    try:
        until(lambda: brews(stack, "first") == (1, 1))
        until(stack.is_at_rest)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
        with Redis(port=valkey.port) as redis:
            assert not redis.exists(lease_key("pot/first"))
            redis.client_kill_filter(_type="normal", skipme=True)  # the server has closed its sockets meanwhile
        send_brew(stack, "second")
        os.kill(process.pid, signal.SIGCONT)
        until(lambda: brews(stack, "second") == (1, 1))
        assert process.is_alive()
    finally:
        process.kill()
    assert view(stack, "brew", "second").attempts == 1


@pytest.mark.timeout(300)
def test_i22_a_process_that_lambda_ends_at_any_tenth_of_its_job_leaves_one_effect(
    valkey: Valkey, faults_provider: Provider
) -> None:
    def play(tenth: int) -> tuple[tuple[int, int], Any]:
        stack = new_stack(valkey, faults_provider, visibility=66, worker=CRASHING)
        pot = f"tenth-{tenth}"
        send_brew(stack, pot)
        process = life_of(stack, seconds=150.0).start()
        # A receive whose reply is lost on a busy machine hides the message for the queue's own visibility.
        until(lambda: view(stack, "brew", pot) is not None, patience=100)
        time.sleep(BREWING * tenth / 10)
        assert process.is_alive()
        process.kill()
        process.join()
        # Its heartbeat has it back in seconds; the queue does, where the process ends before the first beat.
        stack.run(patience=timedelta(seconds=100))
        return brews(stack, pot), view(stack, "brew", pot).status

    with ThreadPoolExecutor(5) as pool:
        ends = list(pool.map(play, TENTHS))
    assert ends == [((1, 1), Status.COMPLETED)] * len(TENTHS)


@pytest.mark.skipif(chosen() is not Mode.NORMAL, reason="it is about losing a lease")
def test_i32_a_handler_that_starves_the_renewing_thread_is_told_that_its_lease_is_lost(
    valkey: Valkey, faults_provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = new_stack(valkey, faults_provider, worker=CRASHING)
    runtime = stack.runtime
    reached: list[str] = []

    def starve(payload: Any, work: UnitOfWork) -> None:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1000.0)  # nobody else gets the interpreter
        try:
            ends = time.monotonic() + 4.0
            while time.monotonic() < ends:
                pass
        finally:
            sys.setswitchinterval(interval)
        work.read(BREWS, payload.pot)
        reached.append("went on")

    brew = runtime.worker.job_types.by_name["brew"]
    monkeypatch.setattr(type(brew), "__call__", lambda self, payload, work: starve(payload, work))
    assert brew.lease < timedelta(seconds=4)
    send_brew(stack, "p")
    stack.mapping.poll()
    assert reached == []
    monkeypatch.undo()
    assert view(stack, "brew", "p").attempts == 0  # given back
    stack.run(patience=timedelta(seconds=90))
    assert brews(stack, "p") == (1, 1)
