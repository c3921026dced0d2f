"""The batch: side by side, in time, in order where asked for, and an exact answer."""

from __future__ import annotations

import json
import signal
import threading
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.powertools import PowertoolsTelemetry
from shared.clock import SystemClock
from shared.consumer import Consumer, end_in_order, partial_response
from shared.delivery import read_event
from shared.errors import EventError
from shared.telemetry import Silent
from tests.world import THINGS, Context, Note, World, body, event, failures, record_of

if TYPE_CHECKING:
    from shared.unit_of_work import UnitOfWork


def note(thing: str, **more: Any) -> str:
    return body(idempotency_key=f"key-{thing}", payload={"thing": thing}, **more)


def test_bat_04_one_unreadable_record_fails_alone() -> None:
    world = World.of()
    bodies = [note("A1"), "hello", body(idempotency_key="k2", payload={"thing": 5}), note("A3")]
    answer = world.handle(event(*(record_of(text, f"m{place}") for place, text in enumerate(bodies))))
    assert failures(answer) == []  # hopeless: dead-lettered with their reasons, and acknowledged
    assert [world.thing(name) is not None for name in ("A1", "A3")] == [True, True]
    assert [delivery.message_id for delivery, _ in world.queue.dead] in (["m1", "m2"], ["m2", "m1"])


def test_i18_only_what_comes_back_is_named() -> None:
    def handler(payload: Note, work: UnitOfWork) -> object:
        if payload.thing == "bad":
            raise TimeoutError
        return None

    world = World.of(handler)
    answer = world.handle(
        event(record_of(note("good"), "m1"), record_of(note("bad"), "m2"), record_of(note("ok"), "m3"))
    )
    assert failures(answer) == ["m2"]


@pytest.mark.parametrize("telemetry", [Silent(), PowertoolsTelemetry("notes")], ids=["silent", "powertools"])
def test_a_fault_of_the_pipeline_itself_leaves_the_neighbours_alone(
    telemetry: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World.of()
    world.telemetry = telemetry
    claim = world.database.claim

    class Broken:
        def __getattr__(self, name: str) -> Any:
            return getattr(claim.__self__, name)

        def claim(self, asked: Any, now: Any) -> Any:
            if asked.idempotency_key == "key-bad":
                text = "canary"
                raise KeyError(text)
            return claim(asked, now)

    world.database = Broken()
    batch = event(*(record_of(note(name), name) for name in ("good", "bad", "fine")))
    assert failures(world.handle(batch)) == ["bad"]
    assert "canary" not in capsys.readouterr().out
    if isinstance(telemetry, Silent):
        assert telemetry.warnings[0][0] == "pipeline_failed"


@pytest.mark.parametrize("lock", [lambda payload: 1 / 0, lambda payload: "", lambda payload: payload.thing == "x"])
def test_a_lock_that_fails_on_a_payload_dead_letters_its_message(lock: Any) -> None:
    world = World.of(lock=lock)
    assert failures(world.handle(event(record_of(note("a"), "m1")))) == []
    ((_, reason),) = world.queue.dead
    assert json.loads(reason)["reason"] == "invalid-lock-key"


def fifo(handler: Any) -> World:
    world = World.of(handler, lock=None)
    world.worker = replace(world.worker, fifo=True)
    return world


def test_bat_05_after_a_failure_nothing_later_of_its_group_runs_and_other_groups_do() -> None:
    ran: list[str] = []

    def handler(payload: Note, work: UnitOfWork) -> object:
        ran.append(payload.thing)
        if payload.thing == "limit-100":
            raise TimeoutError
        return None

    world = fifo(handler)
    records = [
        record_of(note("limit-100"), "m1", group="acct-7"),
        record_of(note("other"), "m2", group="acct-8"),
        record_of(note("limit-250"), "m3", group="acct-7"),
        record_of(note("limit-50"), "m4", group="acct-7"),
    ]
    answer = world.handle(event(*records))
    assert failures(answer) == ["m1", "m3", "m4"]
    assert sorted(ran) == ["limit-100", "other"]
    assert world.queue.hidden["m3"] == world.queue.hidden["m1"] == world.queue.hidden["m4"]


def test_bat_05_a_group_runs_in_order_also_behind_a_dead_letter() -> None:
    ran: list[str] = []

    def handler(payload: Note, work: UnitOfWork) -> object:
        time.sleep(0.01)
        ran.append(payload.thing)
        return None

    world = fifo(handler)
    texts = [note("1"), "hello", note("2"), note("3")]
    answer = world.handle(event(*(record_of(text, f"m{place}", group="g") for place, text in enumerate(texts))))
    assert failures(answer) == []
    assert ran == ["1", "2", "3"]


def test_a_fifo_worker_on_a_standard_queue_is_loud() -> None:
    with pytest.raises(EventError, match="MessageGroupId"):
        fifo(None).handle(event(record_of(note("1"))))


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        {"Records": []},
        {"Records": {}},
        {"Records": [None]},
        event({**record_of(body()), "eventSource": "aws:sns"}),
        event({**record_of(body()), "messageId": ""}),
        event({**record_of(body()), "messageId": None}),
        event({**record_of(body()), "receiptHandle": " "}),
        event({**record_of(body()), "body": None}),
        event({**record_of(body()), "attributes": []}),
        event(record_of(body()), record_of(body())),
        event(record_of(note("good"), "m1"), {**record_of(note("bad"), "m2"), "messageId": "  "}),
    ],
    ids=lambda wrong: repr(wrong)[:30],
)
def test_bat_10_an_event_of_the_wrong_shape_is_loud_and_nothing_runs(wrong: Any) -> None:
    world = World.of()
    with pytest.raises(EventError):
        world.handle(wrong)
    assert world.database.records == {}


def test_ide_02_without_the_lambda_context_nothing_runs() -> None:
    world = World.of()
    with pytest.raises(EventError, match="context is missing"):
        world.handle(event(record_of(body())), context=object())
    assert world.database.records == {}


def test_bat_10_the_answer_never_names_a_stranger_or_a_blank() -> None:
    deliveries = read_event(event(record_of(body(), "m1"), record_of(body(), "m2")))
    assert partial_response(deliveries, {"m2"}) == {"batchItemFailures": [{"itemIdentifier": "m2"}]}
    with pytest.raises(EventError):
        partial_response(deliveries, {"m3"})
    with pytest.raises(EventError):
        partial_response(deliveries, {""})


def test_records_of_a_batch_run_side_by_side_within_the_bound() -> None:
    running, most = [], []
    lock = threading.Lock()
    three = threading.Barrier(3, timeout=10)

    def handler(payload: Note, work: UnitOfWork) -> object:
        with lock:
            running.append(payload.thing)
            most.append(len(running))
        three.wait()  # passes only when three are here at one time
        with lock:
            running.remove(payload.thing)
        return None

    world = World.of(handler)
    world.worker = replace(world.worker, batch_concurrency=3)
    answer = world.handle(event(*(record_of(note(f"t{number}"), f"m{number}") for number in range(6))))
    assert failures(answer) == []
    assert max(most) == 3


def test_i22_records_that_no_longer_fit_into_the_time_left_are_handed_back_unrun() -> None:
    ran: list[str] = []
    world = World.of(lambda payload, work: ran.append(payload.thing))
    answer = world.handle(event(record_of(note("a"), "m1")), Context(timedelta(seconds=12)))
    assert (failures(answer), ran) == (["m1"], [])


def test_a_handler_that_overruns_and_ignores_its_deadline_ends_the_process() -> None:
    release = threading.Event()
    ended: list[int] = []
    world = World.of(lambda payload, work: release.wait(10), timeout=timedelta(milliseconds=1), lock=None)
    world.clock = SystemClock()  # type: ignore[assignment]
    world.worker = replace(world.worker, margin=timedelta(milliseconds=1))

    def end(status: int) -> None:
        ended.append(status)
        release.set()

    consumer = Consumer(world.worker, world.runtime, end_process=end)
    consumer.handle(event(record_of(note("a"), "m1")), Context(timedelta(seconds=1)))
    assert ended == [70]


def test_the_threads_of_a_batch_run_the_next_one_unless_it_overran() -> None:
    release, ran = threading.Event(), []

    def handler(payload: Note, work: UnitOfWork) -> object:
        ran.append(threading.current_thread())
        return release.wait(10) if payload.thing == "slow" else None

    world = World.of(handler, timeout=timedelta(milliseconds=1), lock=None)
    world.clock = SystemClock()  # type: ignore[assignment]
    world.worker = replace(world.worker, margin=timedelta(milliseconds=1))
    consumer = Consumer(world.worker, world.runtime, end_process=lambda _: release.set())
    for name in ("first", "second", "slow", "last"):
        consumer.handle(event(record_of(note(name), name)), Context(timedelta(seconds=1)))
    first, second, slow, last = ran
    assert first is second is slow
    assert last is not slow


def test_obs_10_every_record_is_counted_once_by_how_it_ended() -> None:
    def handler(payload: Note, work: UnitOfWork) -> object:
        if payload.thing.startswith("bad"):
            raise TimeoutError
        return None

    world = World.of(handler)
    names = [f"good{number}" for number in range(7)] + [f"bad{number}" for number in range(3)]
    world.handle(event(*(record_of(note(name), name) for name in names)))
    assert world.telemetry.counts["succeeded", "note"] == 7
    assert world.telemetry.counts["retried", "note"] == 3


def test_r1_6_on_shutdown_what_runs_is_handed_back_with_its_attempt_and_nothing_new_starts() -> None:
    ran: list[str] = []

    def handler(payload: Note, work: UnitOfWork) -> object:
        ran.append(payload.thing)
        runtime.stopping.set()
        work.read(THINGS, payload.thing)
        pytest.fail("went on")

    world = World.of(handler)
    world.worker = replace(world.worker, batch_concurrency=1)
    runtime = world.runtime
    consumer = Consumer(runtime.worker, runtime)
    answer = consumer.handle(event(record_of(note("a"), "m1"), record_of(note("b"), "m2")), Context())
    assert (failures(answer), ran) == (["m1", "m2"], ["a"])
    assert {view.attempts for view in world.database.records.values()} == {0}
    assert set(world.queue.hidden.values()) == {timedelta(0)}


def test_sigterm_ends_an_idle_process_and_lets_a_busy_one_answer() -> None:
    world = World.of()
    consumer = Consumer(world.worker, world.runtime)
    before = signal.getsignal(signal.SIGTERM)
    try:
        end_in_order(consumer)
        with pytest.raises(SystemExit):
            signal.raise_signal(signal.SIGTERM)
        consumer.busy.set()
        consumer.runtime.stopping.clear()
        signal.raise_signal(signal.SIGTERM)
        assert consumer.runtime.stopping.is_set()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_job_whose_thread_cannot_start_runs_on_one_that_could(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start
    started: list[str] = []

    def limited(self: threading.Thread) -> None:
        if self.name.startswith("job"):
            if len(started) == 2:
                text = "can't start new thread"
                raise RuntimeError(text)
            started.append(self.name)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)
    seen = threading.Barrier(2, timeout=10)

    def handler(payload: Note, work: UnitOfWork) -> None:
        if payload.thing in {"t0", "t1"}:
            seen.wait()  # both threads are busy while the third is asked for
        work.create(THINGS, id=payload.thing)

    world = World.of(handler)
    answer = world.handle(event(*(record_of(note(f"t{number}"), f"m{number}") for number in range(6))))
    assert failures(answer) == []
    assert all(world.thing(f"t{number}") is not None for number in range(6))
    assert len(started) == 2


def test_without_any_thread_the_batch_comes_back_whole_and_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def none(self: threading.Thread) -> None:
        if self.name.startswith("job"):
            text = "can't start new thread"
            raise RuntimeError(text)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", none)
    world = World.of()
    assert failures(world.handle(event(record_of(note("a"), "m1"), record_of(note("b"), "m2")))) == ["m1", "m2"]
    assert world.database.records == {}
    assert world.cache.leases == {}
    assert world.telemetry.warnings[0][0] == "pipeline_failed"


def test_a_fault_of_the_pipeline_hides_its_message_for_the_queues_whole_visibility() -> None:
    """A heartbeat may have shortened it to seconds, and receives are counted."""
    world = World.of()

    class Broken(type(world.database)):  # type: ignore[misc]
        def claim(self, claim: Any, now: Any) -> Any:
            raise KeyError

    world.database = Broken(world.clock)
    assert failures(world.handle(event(record_of(note("a"), "m1")))) == ["m1"]
    assert world.queue.hidden == {"m1": world.worker.visibility_timeout}


def test_a_sibling_that_cannot_be_settled_leaves_the_others_of_the_batch_alone() -> None:
    def handler(payload: Note, work: UnitOfWork) -> None:
        if payload.thing == "bad":
            raise TimeoutError
        work.create(THINGS, id=payload.thing)

    world = fifo(handler)
    hide = world.queue.hide

    def broken(delivery: Any, after: timedelta) -> None:
        if delivery.message_id == "m2":
            raise KeyError
        hide(delivery, after)

    world.queue.hide = broken
    names = (("bad", "g"), ("behind", "g"), ("last", "g"), ("other", "h"))
    records = [record_of(note(thing), f"m{place}", group=group) for place, (thing, group) in enumerate(names, 1)]
    assert failures(world.handle(event(*records))) == ["m1", "m2", "m3"]
    assert world.queue.hidden["m3"] == world.queue.hidden["m1"]
    assert world.thing("other") is not None


def test_the_process_ends_before_the_invocation_does_also_after_a_slow_preparation() -> None:
    release = threading.Event()
    ended: list[float] = []
    world = World.of(lambda payload, work: release.wait(10), timeout=timedelta(milliseconds=1), lock=None)
    world.worker = replace(world.worker, margin=timedelta(milliseconds=1))
    runtime = world.runtime
    together = type(runtime.execution.preparation).together

    @dataclass(frozen=True)
    class Slow:
        inner: Any

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def together(self, *arguments: Any) -> Any:
            world.clock.pass_(timedelta(hours=1) - timedelta(seconds=0.5))
            return together(self.inner, *arguments)

    object.__setattr__(runtime.execution, "preparation", Slow(runtime.execution.preparation))

    def end(status: int) -> None:
        ended.append(status)
        release.set()

    consumer = Consumer(world.worker, runtime, end_process=end)
    consumer.handle(event(record_of(note("a"), "m1")), Context(timedelta(hours=1)))  # an hour from now it would hang
    assert ended == [70]


def test_only_those_whose_turn_comes_at_once_have_their_locks_taken_ahead() -> None:
    world = World.of()
    world.worker = replace(world.worker, batch_concurrency=2)
    asked: list[list[str]] = []

    class Noting(type(world.cache)):  # type: ignore[misc]
        def acquire_all(self, wants: Any) -> Any:
            asked.append([want.key for want in wants])
            return super().acquire_all(wants)

    world.cache = Noting(world.clock)
    world.handle(event(*(record_of(note(f"t{number}"), f"m{number}") for number in range(6))))
    assert asked[0] == ["thing/t0", "thing/t1"]
    assert sorted(asked[1:]) == [[f"thing/t{number}"] for number in range(2, 6)]
