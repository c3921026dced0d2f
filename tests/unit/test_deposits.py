"""Payloads and results that are too large to travel: deposited under their hash, fetched whole, or refused with the arithmetic."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.memory.files import MemoryFiles
from shared.errors import Malformed, NotSent, Refused, SettingsError, StoreUnavailable, Unavailable
from shared.intake.operation import OperationStatus
from shared.intake.request import Intake
from shared.job import JobTypes
from shared.job_record import SYSTEM, Status, record_id
from shared.message import FORMAT
from shared.outcome import Because, Completed, DeadLettered, Postponed
from shared.producer import Producer
from shared.wire.deposits import (
    INLINE_BYTES,
    LARGEST_BYTES,
    LONGEST_AHEAD,
    Deposits,
    Mark,
    check_deposit_schedule,
)
from shared.wire.parsing import read_message, typed_payload
from tests.world import START, THINGS, Note, World, body

if TYPE_CHECKING:
    from shared.unit_of_work import UnitOfWork

RECORD = record_id(SYSTEM, "note", "k1")
LARGE = "ü" * (INLINE_BYTES // 2 + 1)


def deposited(world: World) -> list[bytes]:
    return list(world.files.files.values())


def large_body(world: World, text: str = LARGE, **changes: Any) -> str:
    """A message whose payload is deposited, as any language would write it."""
    payload = json.dumps({"thing": "a", "text": text}, ensure_ascii=False)
    mark = Mark.read(Deposits(world.files).fit(payload))
    assert mark is not None
    return body(format=3, payload=..., deposit={"sha256": mark.sha256, "bytes": mark.size}, **changes)


def test_what_may_travel_travels() -> None:
    deposits = Deposits(MemoryFiles())
    text = "x" * INLINE_BYTES
    assert deposits.fit(text) == deposits.whole(text) == text
    assert deposits.store.files == {}  # type: ignore[attr-defined]


def test_what_is_too_large_is_deposited_once_and_fetched_whole() -> None:
    deposits = Deposits(MemoryFiles())
    mark = deposits.fit(LARGE)
    assert deposits.fit(LARGE) == mark == str(Mark.of(LARGE))
    assert deposits.fit(mark) == mark  # what is a mark already stays one
    assert len(deposits.store.files) == 1  # type: ignore[attr-defined]
    assert deposits.whole(mark) == LARGE


def test_beyond_what_is_kept_it_is_refused_with_the_arithmetic() -> None:
    with pytest.raises(Refused, match=f"{LARGEST_BYTES + 1} bytes, {LARGEST_BYTES} are kept: put it into a file"):
        Deposits(MemoryFiles()).fit("x" * (LARGEST_BYTES + 1))


@pytest.mark.parametrize(
    "text", ["{}", "deposit:", "deposit:abc:1", f"deposit:{'a' * 64}:0", f"deposit:{'a' * 64}:1 ", None]
)
def test_no_other_text_is_a_mark(text: str | None) -> None:
    assert Mark.read(text) is None


def test_what_is_gone_or_is_something_else_is_told() -> None:
    deposits = Deposits(MemoryFiles())
    mark = deposits.fit(LARGE)
    (place,) = deposits.store.files  # type: ignore[attr-defined]
    for body_ in (b"x" * len(LARGE.encode()), b"short"):
        deposits.store.files[place] = body_  # type: ignore[attr-defined]
        with pytest.raises(Malformed, match="deposit-gone"):
            deposits.whole(mark)
    deposits.store.files.clear()  # type: ignore[attr-defined]
    with pytest.raises(Malformed, match="deposit-gone"):
        deposits.whole(mark)


def test_a_job_for_long_after_is_not_deposited() -> None:
    mark = str(Mark.of(LARGE))
    check_deposit_schedule(mark, LONGEST_AHEAD)
    check_deposit_schedule("{}", timedelta(days=300))
    with pytest.raises(Refused, match="it is kept for 90, and the job may need it for long after its time; 45 days"):
        check_deposit_schedule(mark, LONGEST_AHEAD + timedelta(seconds=1))


# On the way of a message.


def test_a_large_payload_runs_as_a_small_one_does() -> None:
    world = World.of()
    assert world.run(large_body(world)) == (Completed(1), True)
    assert world.thing("a") == {"id": "a", "text": LARGE, "times": 1}


def test_the_same_payload_is_the_same_job_whether_it_is_deposited_or_not() -> None:
    world = World.of()
    assert world.run(large_body(world, "small" + "x" * INLINE_BYTES))[0] == Completed(1)
    inline = body(payload={"text": "small" + "x" * INLINE_BYTES, "thing": "a"})
    outcome, _ = world.run(inline)
    assert getattr(outcome, "status", None) == "completed"  # a duplicate, and no key that was used for something else
    other, _ = world.run(large_body(world, "other" + "x" * INLINE_BYTES))
    assert isinstance(other, DeadLettered)
    assert other.failure.reason == "idempotency-key-reused"


def test_a_payload_that_is_gone_is_dead_lettered_with_its_reason() -> None:
    world = World.of()
    text = large_body(world)
    world.files.files.clear()
    outcome, _ = world.run(text)
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == "deposit-gone"
    assert world.database.view(RECORD) is None


def test_a_store_that_does_not_answer_costs_no_attempt() -> None:
    world = World.of()
    text = large_body(world)
    look = world.files.look

    def gone(*_: object) -> None:
        raise StoreUnavailable("no answer")

    world.files.look = gone
    outcome, acknowledged = world.run(text)
    assert isinstance(outcome, Postponed)
    assert (outcome.because, acknowledged) == (Because.STORE_UNAVAILABLE, False)
    world.files.look = look
    assert world.run(text)[0] == Completed(1)


def test_a_function_that_knows_no_bucket_waits_for_its_deploy() -> None:
    world = World.of()
    text = large_body(world)
    world.files = None
    outcome, _ = world.run(text)
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.MISCONFIGURED
    with pytest.raises(SettingsError, match="knows no bucket of deposits"):
        typed_payload(read_message(text), world.worker.job_types)


def test_what_lies_there_is_read_as_strictly_as_what_travels() -> None:
    world = World.of()
    doubled = '{"thing":"a","thing":"b","text":"' + "x" * INLINE_BYTES + '"}'
    mark = Mark.read(Deposits(world.files).fit(doubled))
    assert mark is not None
    outcome, _ = world.run(body(format=3, payload=..., deposit={"sha256": mark.sha256, "bytes": mark.size}))
    assert isinstance(outcome, DeadLettered)


@pytest.mark.parametrize(
    "changes",
    [
        {"deposit": {"sha256": "a" * 64, "bytes": 1}},  # beside a payload
        {"payload": ...},  # neither
        {"payload": ..., "deposit": {"sha256": "A" * 64, "bytes": 1}},
        {"payload": ..., "deposit": {"sha256": "a" * 64, "bytes": 0}},
        {"payload": ..., "deposit": {"sha256": "a" * 64}},
        {"payload": ..., "deposit": {"sha256": "a" * 64, "bytes": 1, "bucket": "mine"}},
        {"payload": ..., "deposit": {"sha256": "a" * 64, "bytes": LARGEST_BYTES + 1}},
    ],
)
def test_a_deposit_that_is_none_is_malformed(changes: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        read_message(body(format=3, **changes))


def test_a_message_says_that_earlier_readers_do_not_know_it() -> None:
    world = World.of()
    message = read_message(large_body(world))
    again = read_message(message.body())
    assert again == message
    assert json.loads(message.body())["format"] == FORMAT == 3
    assert "payload" not in json.loads(message.body())


# Who sends.


def producer(world: World, *, deposits: bool = True) -> Producer:
    store = Deposits(world.files) if deposits else None
    return Producer(world.queue, world.clock, world.runtime.execution.here.random, world.tokens, deposits=store)


def test_a_producer_deposits_what_is_too_large_and_what_it_sends_runs() -> None:
    world = World.of()
    message = world.worker.jobs[0].message(Note(thing="a", text=LARGE), "k1")
    producer(world).enqueue(message)
    (sent,) = world.queue.sent
    assert len(sent.body) < 1000
    assert world.run(sent.body)[0] == Completed(1)
    with pytest.raises(Refused, match="or give the producer the bucket of deposits"):
        producer(world, deposits=False).enqueue(world.worker.jobs[0].message(Note(thing="a", text=LARGE * 4), "k2"))


def test_a_payload_beyond_what_is_kept_is_refused_where_it_is_made() -> None:
    world = World.of()
    with pytest.raises(Malformed, match="payload-too-large"):
        world.worker.jobs[0].message(Note(thing="a", text="x" * LARGEST_BYTES), "k1")


def test_what_a_handler_enqueues_is_deposited_before_its_commit() -> None:
    def handler(payload: Note, work: UnitOfWork) -> None:
        if payload.thing == "first":
            work.enqueue(world.worker.jobs[0].message(Note(thing="second", text=LARGE), "k2"))
        work.create(THINGS, id=payload.thing, length=len(payload.text))

    world = World.of(handler)
    assert world.execute(body(payload={"thing": "first"})) == Completed(1)
    (posting,) = world.database.outbox.values()
    assert len(posting.body) < 1000
    assert world.execute(posting.body) == Completed(1)
    assert world.thing("second") == {"id": "second", "length": len(LARGE)}


def test_a_store_that_is_away_while_a_handler_enqueues_costs_no_attempt() -> None:
    def handler(payload: Note, work: UnitOfWork) -> None:
        work.enqueue(world.worker.jobs[0].message(Note(thing="second", text=LARGE), "k2"))

    def gone(*_: object) -> None:
        raise StoreUnavailable("no answer")

    world = World.of(handler)
    world.files.write = gone
    outcome = world.execute(body())
    assert isinstance(outcome, Postponed)
    assert (world.database.view(RECORD).attempts, world.database.outbox) == (0, {})


# Results, and clients.


def test_a_large_result_is_deposited_and_its_client_gets_it_whole() -> None:
    result = {"text": LARGE}
    world = World.of(lambda payload, work: result, open_to_clients=True)
    door = Intake(
        JobTypes.of(*world.worker.jobs),
        {"note": "notes"},
        world.database,
        world.database,
        world.runtime.execution.here,
        Deposits(world.files),
    )
    receipt = door.accept("ann", "note", "k1", json.dumps({"thing": "a", "text": LARGE}))
    (posting,) = world.database.outbox.values()
    assert len(posting.body) < 1000
    assert world.run(posting.body)[0] == Completed(1)
    operation = door.look("ann", receipt.operation.operation_id)
    assert operation is not None
    assert (operation.status, operation.result) == (OperationStatus.DONE, result)
    (view,) = world.database.records.values()
    assert Mark.read(view.result) is not None
    assert len(deposited(world)) == 2
    world.files.files.clear()  # it is forgotten one day: what is left says that the job is done
    operation = door.look("ann", receipt.operation.operation_id)
    assert operation is not None
    assert (operation.status, operation.result) == (OperationStatus.DONE, None)


def test_i4_a_request_that_is_refused_deposits_nothing() -> None:
    world = World.of(open_to_clients=True)
    here = world.runtime.execution.here
    types = JobTypes.of(*world.worker.jobs)
    door = Intake(types, {"note": "notes"}, world.database, world.database, here, Deposits(world.files))
    far = START + timedelta(days=46)
    for text, more in (
        (json.dumps({"thing": 7, "text": LARGE}), {}),
        (json.dumps({"thing": "a", "text": "x" * LARGEST_BYTES}), {}),
        (json.dumps({"thing": "a", "text": LARGE}), {"version": 2}),
    ):
        with pytest.raises(Malformed):
            door.accept("ann", "note", "k", text, **more)  # type: ignore[arg-type]
    assert deposited(world) == []
    with pytest.raises(Malformed, match="invalid-run-at"):
        door.accept("ann", "note", "k", json.dumps({"thing": "a", "text": LARGE}), run_at=far)
    assert world.database.records == {}
    assert door.accept("ann", "note", "k", json.dumps({"thing": "a"}), run_at=far).operation.run_at == far


def test_without_a_bucket_the_front_door_takes_what_travels() -> None:
    world = World.of(open_to_clients=True)
    here = world.runtime.execution.here
    door = Intake(JobTypes.of(*world.worker.jobs), {"note": "notes"}, world.database, world.database, here)
    with pytest.raises(Malformed, match="payload-too-large"):
        door.accept("ann", "note", "k", json.dumps({"thing": "a", "text": "x" * 256 * 1024}))


def test_a_result_beyond_what_is_kept_is_refused() -> None:
    world = World.of(lambda payload, work: {"text": "x" * LARGEST_BYTES})
    outcome = world.execute(body())
    assert isinstance(outcome, DeadLettered)
    assert "are kept: put it into a file" in outcome.failure.error
    assert world.database.view(RECORD).status is Status.RUNNING


def test_a_rescued_job_brings_its_deposited_payload_along() -> None:
    from shared.rounds.again import posting_again  # noqa: PLC0415 - here alone

    world = World.of(lambda payload, work: (_ for _ in ()).throw(TimeoutError()))
    world.run(large_body(world))
    posting = posting_again(world.database.view(RECORD), {"note": "notes"}, "again")
    assert posting is not None
    assert read_message(posting.body).payload == world.database.view(RECORD).payload
    assert Mark.read(read_message(posting.body).payload) is not None


def test_a_batch_that_cannot_be_deposited_is_not_sent() -> None:
    world = World.of()

    def gone(*_: object) -> None:
        raise StoreUnavailable("no answer")

    world.files.write = gone
    with pytest.raises((Unavailable, NotSent)):
        producer(world).enqueue(world.worker.jobs[0].message(Note(thing="a", text=LARGE), "k1"))
    assert world.queue.sent == []
