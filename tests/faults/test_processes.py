"""Real processes that are killed, a real Valkey that is stopped, replies that are cut on the wire."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import psutil
import pytest
from redis import Redis

from functions import payments
from local.processes.children import Children
from local.stack.valkey import Valkey
from shared.backends.redis.connection import Connection
from shared.backends.redis.keys import lease_key
from shared.backends.redis.leases import RedisStore
from shared.consumer import Consumer
from shared.errors import CacheUnavailable
from shared.runtime import connect as connect_runtime
from tests.faults.cutter import Cutter
from tests.stack import new_stack
from tests.waiting import until
from tests.world import Context, acquired, event, failures, record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from local.outside.payment_provider import Provider
    from tests.stack import Stack

TTL = timedelta(seconds=20)


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[Valkey]:
    """A Valkey that may be stopped."""
    with Children() as children:
        server = Valkey(children, tmp_path)
        server.start()
        yield server


def body(order: str, intent: str) -> str:
    payload = f'{{"order_id":"{order}","payment_intent_id":"{intent}"}}'
    return f'{{"job_type":"capture-payment","idempotency_key":"{order}","payload":{payload}}}'


def test_r4_4_a_worker_killed_after_the_charge_and_before_the_commit_charges_once(
    aws_endpoint: str, valkey: Valkey, provider: Provider, tmp_path: Path
) -> None:
    stack = new_stack(valkey, provider, visibility=3)
    stack.seed(order_id="killed", payment_intent_id="pi_kill_process")
    stack.send(body("killed", "pi_kill_process"))
    with _worker_of(stack, aws_endpoint, tmp_path / "log") as worker:
        status = worker.wait(60)
    assert status == -signal.SIGKILL, (tmp_path / "log").read_text()  # the witness: it was killed, by the provider
    assert len(provider.ledger.charges_of("pi_kill_process")) == 1  # after the charge
    assert stack.order("killed")["status"] == "pending"  # and before the commit
    stack.run()
    assert stack.order("killed")["status"] == "paid"
    assert len(provider.ledger.charges_of("pi_kill_process")) == 1
    assert stack.dead_letters() == []


def test_redis_stopped_between_commit_and_invalidation_leaves_only_the_invalidation_to_repeat(
    own_valkey: Valkey, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = new_stack(own_valkey, provider)
    stack.seed(order_id="o", payment_intent_id="pi_ok_between")
    runtime = connect_runtime(payments.WORKER, stack.settings)
    consumer = Consumer(runtime.worker, runtime)
    commit = type(runtime.execution.records).commit

    def commit_and_stop(*arguments: object) -> None:
        commit(*arguments)  # type: ignore[arg-type]
        own_valkey.stop()

    with monkeypatch.context() as patch:
        patch.setattr(type(runtime.execution.records), "commit", commit_and_stop)
        answer = consumer.handle(event(record_of(body("o", "pi_ok_between"))), Context())
    assert not own_valkey.is_running  # the witness
    assert failures(answer) == ["m1"]  # committed, not acknowledged
    assert stack.order("o")["status"] == "paid"
    again = consumer.handle(event(record_of(body("o", "pi_ok_between"))), Context())
    assert failures(again) == ["m1"]
    own_valkey.start()
    last = consumer.handle(event(record_of(body("o", "pi_ok_between"))), Context())
    assert failures(last) == []
    assert stack.order("o")["version"] == "2"
    assert len(provider.ledger.charges_of("pi_ok_between")) == 1


@pytest.fixture
def cutter(valkey: Valkey) -> Iterator[Cutter]:
    made = Cutter(valkey.port)
    yield made
    made.close()


def test_lck_05_an_acquire_whose_reply_was_cut_finds_its_own_token(valkey: Valkey, cutter: Cutter) -> None:
    store = RedisStore(Connection("127.0.0.1", cutter.port, tls=False, cluster=False))
    acquired(store, "warm", "t", TTL)
    cutter.armed = True
    assert acquired(store, "order/cut", "mine", TTL)
    assert cutter.cuts == 1  # the witness
    other = RedisStore(Connection("127.0.0.1", valkey.port, tls=False, cluster=False))
    assert not acquired(other, "order/cut", "other", TTL)


def test_lck_03_a_lease_never_stands_without_an_expiry(valkey: Valkey, cutter: Cutter) -> None:
    store = RedisStore(Connection("127.0.0.1", cutter.port, tls=False, cluster=False))
    acquired(store, "warm", "t", TTL)
    cutter.armed = True
    acquired(store, "order/expires", "mine", TTL)
    assert cutter.cuts == 1
    with Redis(port=valkey.port) as redis:
        assert redis.pttl(lease_key("order/expires")) > 0


def test_lck_11_a_connection_cut_while_idle_is_replaced(valkey: Valkey) -> None:
    store = RedisStore(Connection("127.0.0.1", valkey.port, tls=False, cluster=False))
    acquired(store, "order/idle", "t", TTL)
    with Redis(port=valkey.port) as redis:
        redis.client_kill_filter(_type="normal", skipme=True)
    begun = time.monotonic()
    assert store.renew("order/idle", "t", TTL)
    assert time.monotonic() - begun < 5


def test_lck_11_a_server_that_never_answers_costs_a_bounded_time() -> None:
    hole = socket.create_server(("127.0.0.1", 0))
    store = RedisStore(Connection("127.0.0.1", hole.getsockname()[1], tls=False, cluster=False))
    begun = time.monotonic()
    with pytest.raises(CacheUnavailable):
        acquired(store, "order/hole", "t", TTL)
    assert time.monotonic() - begun < 10  # two tries of half a second, on a machine that may be busy
    hole.close()


def test_a_function_without_its_stores_loses_nothing(
    provider: Provider, valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = new_stack(valkey, provider)
    stack.seed(order_id="o", payment_intent_id="pi_ok_later")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    runtime = connect_runtime(payments.WORKER, replace(stack.settings, cache_port="9"))
    answer = Consumer(runtime.worker, runtime).handle(event(record_of(body("o", "pi_ok_later"))), Context())
    assert failures(answer) == ["m1"]
    assert provider.ledger.charges_of("pi_ok_later") == []


def test_i28_a_worker_frozen_past_its_claim_changes_nothing_when_it_thaws(
    aws_endpoint: str, valkey: Valkey, provider: Provider, tmp_path: Path
) -> None:
    stack = new_stack(valkey, provider, visibility=3)
    stack.seed(order_id="frozen", payment_intent_id="pi_slow_frozen")
    stack.send(body("frozen", "pi_slow_frozen"))
    with _worker_of(stack, aws_endpoint, tmp_path / "log") as worker:
        _wait_until(lambda: bool(provider.ledger.charges_of("pi_slow_frozen")), worker)
        worker.send_signal(signal.SIGSTOP)
        frozen = time.monotonic()
        _wait_until(lambda: psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED, worker)
        assert stack.order("frozen")["status"] == "pending"  # it was frozen between charge and commit
        stack.run()
        paid = stack.order("frozen")
        assert (paid["status"], paid["version"]) == ("paid", "2")
        assert time.monotonic() - frozen > 5  # the witness: longer than its claim of 4 + 1 seconds
        worker.send_signal(signal.SIGCONT)
        time.sleep(3)  # whatever the zombie still does
    assert stack.order("frozen") == paid
    assert len(provider.ledger.charges_of("pi_slow_frozen")) == 1
    assert stack.dead_letters() == []


@contextlib.contextmanager
def _worker_of(stack: Stack, endpoint: str, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A consumer of the stack in a process of its own."""
    environ = {**os.environ, **stack.settings.to_environ(), "AWS_ENDPOINT_URL": endpoint}
    command = [sys.executable, "-m", "tests.faults.worker_process", "60"]
    with output.open("wb") as log:
        worker = subprocess.Popen(command, env=environ, stdout=log, stderr=log)  # noqa: S603 - our own
        try:
            yield worker
        finally:
            worker.kill()
            worker.wait()


def _wait_until(happened: Callable[[], bool], worker: subprocess.Popen[bytes]) -> None:
    def looked() -> bool:
        assert worker.poll() is None, f"the worker ended with {worker.returncode}"
        return happened()

    until(looked)
