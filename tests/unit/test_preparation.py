"""A batch prepared: what fails there costs nobody a job, and nothing that was begun there goes on behind the outcome."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.errors import CacheUnavailable, DeadLetter, SettingsError
from shared.job_record import SYSTEM, Status, record_id
from shared.outcome import Because, Completed, DeadLettered, Postponed
from shared.pipeline.heartbeat import Heartbeat
from shared.pipeline.keeper import Keeper
from shared.pipeline.preparation import Preparation
from shared.worker import Worker
from tests.world import THINGS, Context, Note, World, acquired, body, event, failures, note_job, record_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.lease import Want
    from shared.unit_of_work import UnitOfWork

BEAT = timedelta(seconds=10)
RECORD = record_id(SYSTEM, "note", "k1")
ADVICE = "set TAHAN_CACHE_CLUSTER=true"


def note(name: str) -> str:
    return body(idempotency_key=name, payload={"thing": name})


def beating(handler: Any = None, **options: Any) -> World:
    declared = {"heartbeat": BEAT, "timeout": timedelta(minutes=1), "max_latency": timedelta(hours=1)}
    return World(Worker("notes", jobs=(note_job(handler, **declared),), **options))


class Kept:
    """What a keeper has kept and not forgotten, noted from outside."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hearts: list[Heartbeat] = []
        keep, forget = Keeper.keep, Keeper.forget

        def kept(keeper: Keeper, renewable: Any) -> None:
            if isinstance(renewable, Heartbeat):
                self.hearts.append(renewable)
            keep(keeper, renewable)

        def forgotten(keeper: Keeper, renewable: Any) -> bool:
            if renewable in self.hearts:
                self.hearts.remove(renewable)
            return forget(keeper, renewable)

        monkeypatch.setattr(Keeper, "keep", kept)
        monkeypatch.setattr(Keeper, "forget", forgotten)


def test_siblings_behind_a_failed_one_beat_no_more_when_their_wait_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(monkeypatch)

    def handler(payload: Note, work: UnitOfWork) -> None:
        raise TimeoutError

    world = beating(handler, fifo=True, batch_size=3)
    hide = world.queue.hide
    beating_then: list[list[str]] = []

    def hidden(delivery: Any, after: timedelta) -> None:
        if after < 3 * BEAT:  # a wait that settlement sets, no beat
            beating_then.append([heart.delivery.message_id for heart in kept.hearts])
        hide(delivery, after)

    world.queue.hide = hidden
    records = [record_of(note(name), name, group="g") for name in ("m1", "m2", "m3")]
    assert failures(world.handle(event(*records), Context(timedelta(minutes=4)))) == ["m1", "m2", "m3"]
    assert beating_then == [["m2", "m3"], ["m3"], []]
    assert kept.hearts == []


def test_a_cache_that_is_set_wrongly_in_preparing_leaves_one_heartbeat_and_one_token_for_each_delivery(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = Kept(monkeypatch)
    world = beating()
    asked: list[str] = []

    class Odd(type(world.cache)):  # type: ignore[misc]
        def acquire_all(self, wants: Sequence[Want]) -> list[bool]:
            asked.extend(want.token for want in wants)
            granted: list[bool] = super().acquire_all(wants)
            if len(wants) > 1:  # in preparing
                raise SettingsError(ADVICE)
            return granted

    world.cache = Odd(world.clock)
    answer = world.handle(event(record_of(note("a"), "m1"), record_of(note("b"), "m2")), Context(timedelta(minutes=2)))
    assert failures(answer) == []  # the locks that were taken were found again by their tokens
    assert kept.hearts == []
    assert len(asked) == 4
    assert len(set(asked)) == 2
    assert world.cache.leases == {}


def test_one_delivery_that_cannot_be_prepared_leaves_the_others_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    world = beating()
    runtime = world.runtime
    alone = Preparation.alone

    def broken(self: Preparation, delivery: Any, until: Any) -> Any:
        if delivery.message_id == "m2":
            raise RuntimeError
        return alone(self, delivery, until)

    monkeypatch.setattr(Preparation, "alone", broken)
    batch = [world.delivery(note(name)) for name in ("a", "b", "c")]
    found = runtime.execution.preparation.together(batch, {"m1", "m2", "m3"}, world.clock.now() + timedelta(minutes=2))
    assert list(found) == ["m1", "m3"]
    assert [len(prepared.locks.leases) for prepared in found.values()] == [1, 1]
    assert world.telemetry.warnings[0][0] == "not_prepared"


@pytest.mark.parametrize("error", [SettingsError(ADVICE), RuntimeError("a bug"), CacheUnavailable()])
def test_leases_that_cannot_be_given_back_leave_the_outcome_as_it_is(error: Exception) -> None:
    def handler(payload: Note, work: UnitOfWork) -> None:
        raise DeadLetter("hopeless")

    world = World.of(handler)

    class Odd(type(world.cache)):  # type: ignore[misc]
        def finish(self, tags: Any, leases: Any) -> None:
            raise error

    world.cache = Odd(world.clock)
    outcome, acknowledged = world.run(body())
    assert isinstance(outcome, DeadLettered)  # else a second attempt would be made of what cannot succeed
    assert acknowledged
    assert world.database.view(RECORD).status is Status.DEAD_LETTERED
    told = [name for name, _ in world.telemetry.warnings]
    assert told == ([] if isinstance(error, CacheUnavailable) else ["leases_not_returned"])


def test_a_cache_that_is_set_wrongly_is_told_with_its_advice_and_postpones_without_an_attempt() -> None:
    world = World.of()

    class Odd(type(world.cache)):  # type: ignore[misc]
        def acquire_all(self, wants: Sequence[Want]) -> list[bool]:
            raise SettingsError(ADVICE)

    world.cache = Odd(world.clock)
    outcome, acknowledged = world.run(body())
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.MISCONFIGURED
    assert not acknowledged
    assert world.queue.hidden["m1"] == outcome.after >= timedelta(seconds=2)
    assert world.database.records == {}
    assert world.telemetry.warnings == [("misconfigured", {"message_id": "m1", "advice": ADVICE})]


def test_a_setting_that_a_handler_misses_costs_no_attempt() -> None:
    def handler(payload: Note, work: UnitOfWork) -> None:
        raise SettingsError(ADVICE)

    world = World.of(handler)
    outcome, _ = world.run(body())
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.MISCONFIGURED
    assert (world.database.view(RECORD).attempts, world.database.view(RECORD).status) == (0, Status.RETRYING)
    assert ("misconfigured", {"message_id": "m1", "advice": ADVICE}) in world.telemetry.warnings


def test_a_cache_that_is_set_wrongly_after_the_commit_has_the_invalidation_repeated() -> None:
    world = World.of()
    broken = [True]

    class Odd(type(world.cache)):  # type: ignore[misc]
        def finish(self, tags: Any, leases: Any) -> None:
            if broken:
                raise SettingsError(ADVICE)
            super().finish(tags, leases)

    world.cache = Odd(world.clock)
    outcome, acknowledged = world.run(body())
    assert isinstance(outcome, Postponed)
    assert not acknowledged
    assert world.thing("a") is not None
    broken.clear()
    world.clock.pass_(timedelta(minutes=1))
    assert world.run(body())[1]


def test_a_message_whose_heart_stopped_while_it_waited_for_its_turn_makes_no_attempt() -> None:
    world = beating()
    runtime = world.runtime
    until = world.clock.now() + timedelta(minutes=2)
    delivery = world.delivery(body())
    prepared = runtime.execution.preparation.together([delivery], {"m1"}, until)["m1"]
    assert prepared.heartbeat is not None
    prepared.heartbeat.lost.set()  # refused: the message was given to another
    outcome = runtime.execution.execute(delivery, until, prepared)
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.LEASE_LOST
    assert world.database.records == {}
    assert world.cache.leases == {}


def test_a_process_that_is_to_end_while_it_waits_for_a_lock_hands_back_at_once() -> None:
    world = World.of(lock_wait=timedelta(seconds=5))
    acquired(world.cache, "thing/a", "another", timedelta(hours=1))
    runtime = world.runtime
    sleep = world.clock.sleep

    def ends(seconds: float) -> None:
        runtime.stopping.set()
        sleep(seconds)

    world.clock.sleep = ends  # type: ignore[method-assign]
    with runtime.keeper:
        outcome = runtime.execution.execute(world.delivery(body()), world.clock.now() + timedelta(seconds=60))
    assert outcome == Postponed(timedelta(0), Because.STOPPING)


def test_a_handler_that_leaves_by_sys_exit_fails_alone() -> None:
    def handler(payload: Note, work: UnitOfWork) -> None:
        if payload.thing == "bad":
            raise SystemExit(1)
        work.create(THINGS, id=payload.thing)

    world = World.of(handler)
    answer = world.handle(event(record_of(note("bad"), "m1"), record_of(note("good"), "m2")))
    assert failures(answer) == ["m1"]
    assert world.thing("good") is not None
    assert world.database.view(record_id(SYSTEM, "note", "bad")).last_failure.error.startswith("SystemExit")


def test_a_large_batch_with_a_heartbeat_that_one_thread_can_beat_for_runs_whole() -> None:
    job = note_job(heartbeat=timedelta(seconds=30), timeout=timedelta(minutes=1), max_latency=timedelta(hours=1))
    worker = Worker("notes", jobs=(job,), batch_size=300, batch_concurrency=100, window=timedelta(seconds=1))
    world = World(worker)
    records = [record_of(note(f"n{number}"), f"m{number}") for number in range(300)]
    assert failures(world.handle(event(*records), Context(worker.function_timeout))) == []
    assert all(view.status is Status.COMPLETED for view in world.database.records.values())


def test_odd_but_legal_options_run_together() -> None:
    def handler(payload: Note, work: UnitOfWork) -> None:
        work.create(THINGS, id=payload.thing, number=work.fencing_number())

    declared = note_job(
        handler,
        lock=lambda payload: (f"b/{payload.thing}", f"a/{payload.thing}", "all"),
        lock_wait=timedelta(0),
        heartbeat=timedelta(seconds=1),
        timeout=timedelta(seconds=2),
    )
    world = World(Worker("notes", jobs=(declared,), fifo=True, batch_size=10))
    records = [record_of(note(f"n{number}"), f"m{number}", group="g") for number in range(10)]
    assert failures(world.handle(event(*records), Context(world.worker.function_timeout))) == []
    assert [world.thing(f"n{number}") is not None for number in range(10)] == [True] * 10
    again = replace(world.worker, fifo=False)
    world.worker = again
    outcome, _ = world.run(note("n0"))
    assert not isinstance(outcome, Completed)
