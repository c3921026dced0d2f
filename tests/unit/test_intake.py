"""The intake: one job a key and owner; what can never run is refused before anything is written; foreign is like absent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from shared.clock import Surroundings
from shared.errors import DeadLetter, Malformed, Unavailable
from shared.intake.acceptance import Overtaken
from shared.intake.operation import OperationStatus
from shared.intake.request import BODY_BYTES, Intake, OtherPayloadForKey, Outdated, TooLarge, UnknownJobType
from shared.job import JobTypes, Unique
from shared.job_record import LOST_AFTER, RETENTION, SYSTEM, record_id
from shared.outcome import Completed, DeadLettered, Duplicate, Failed, Postponed
from shared.worker import Worker
from tests.world import START, Counter, World, note_job

BODY = '{"thing":"a"}'


@dataclass
class Door:
    """An intake before a worker's world."""

    handler: Any = None
    unique: Unique = Unique.FOR_EVER
    world: Any = None

    def __post_init__(self) -> None:
        job = note_job(self.handler, unique=self.unique)
        self.world = self.world or World(Worker("notes", jobs=(job,)))
        database = self.world.database
        here = Surroundings(self.world.clock, Random(1), Counter())  # noqa: S311 - repeatable
        self.intake = Intake(JobTypes.of(job), {"note": "notes"}, database, database, here)

    def sent(self) -> list[str]:
        """Bodies of what the relay would send."""
        return [posting.body for posting in self.world.database.outbox.values()]

    def run(self, body: str) -> Any:
        return self.world.run(body)[0]


def test_an_accepted_job_is_pending_then_done_with_its_result() -> None:
    door = Door()
    receipt = door.intake.accept("user-1", "note", "k", BODY)
    assert (receipt.operation.status, receipt.replayed) == (OperationStatus.PENDING, False)
    (body,) = door.sent()
    assert door.run(body) == Completed(1)
    seen = door.intake.look("user-1", receipt.operation.operation_id)
    assert seen is not None
    assert (seen.status, seen.result, seen.is_final) == (OperationStatus.DONE, {"written": "x"}, True)
    assert door.run(body) == Duplicate("completed")


def test_i2_the_same_request_again_is_answered_with_the_same_operation_and_sends_nothing() -> None:
    door = Door()
    first = door.intake.accept("user-1", "note", "k", BODY)
    again = door.intake.accept("user-1", "note", "k", '{ "text":"x", "thing":"a" }')  # its default, spelt out
    assert again.operation == first.operation
    assert again.replayed
    assert len(door.sent()) == 1


def test_i3_a_key_with_another_payload_is_refused() -> None:
    door = Door()
    door.intake.accept("user-1", "note", "k", BODY)
    with pytest.raises(OtherPayloadForKey):
        door.intake.accept("user-1", "note", "k", '{"thing":"b"}')
    assert len(door.sent()) == 1


def test_i6_owners_do_not_see_each_other() -> None:
    door = Door()
    mine = door.intake.accept("user-1", "note", "k", BODY)
    yours = door.intake.accept("user-2", "note", "k", '{"thing":"b"}')
    assert mine.operation.operation_id != yours.operation.operation_id
    assert door.intake.look("user-2", mine.operation.operation_id) is None
    assert door.intake.look("user-1", "op_" + "0" * 64) is None


@pytest.mark.parametrize("name", ["", "op_", "op_xyz", "op_" + "0" * 63, "op_" + "0" * 64 + "\n", "OP_" + "0" * 64])
def test_what_is_no_operation_id_is_absent(name: str) -> None:
    assert Door().intake.look("user-1", name) is None


def test_a_job_that_came_straight_from_the_queue_is_nobodys_operation() -> None:
    door = Door()
    door.run(json.dumps({"job_type": "note", "idempotency_key": "k", "payload": {"thing": "a"}}))
    record = record_id(SYSTEM, "note", "k")
    assert door.intake.look("user-1", f"op_{record}") is None


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (None, "missing-idempotency-key"),
        ("", "missing-idempotency-key"),
        ("  ", "missing-idempotency-key"),
        ("k" * 256, "invalid-idempotency-key"),
        ("é", "invalid-idempotency-key"),
    ],
)
def test_ide_04_a_key_that_is_missing_blank_or_too_long_is_refused_and_nothing_is_written(
    key: str | None, reason: str
) -> None:
    door = Door()
    with pytest.raises(Malformed) as refusal:
        door.intake.accept("user-1", "note", key, BODY)
    assert refusal.value.reason == reason
    assert door.world.database.records == {}
    assert door.sent() == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "malformed-json"),
        ("[]", "malformed-json"),
        ('{"thing":"a","thing":"b"}', "malformed-json"),
        ('{"thing":1}', "invalid-payload"),
        ('{"thing":"a","more":1}', "invalid-payload"),
        ('{"thing":"\\ud83d"}', "malformed-json"),
    ],
)
def test_pay_01_a_body_that_could_never_run_is_refused_and_nothing_is_written(body: str, reason: str) -> None:
    door = Door()
    with pytest.raises(Malformed) as refusal:
        door.intake.accept("user-1", "note", "k", body)
    assert refusal.value.reason == reason
    assert door.world.database.records == {}


def test_pay_03_a_body_is_measured_in_bytes() -> None:
    door = Door()
    with pytest.raises(TooLarge):
        door.intake.accept(
            "user-1", "note", "k", json.dumps({"thing": "\u4e2d" * (BODY_BYTES // 3)}, ensure_ascii=False)
        )
    assert door.sent() == []


def test_a_job_type_that_is_not_open_is_unknown() -> None:
    with pytest.raises(UnknownJobType):
        Door().intake.accept("user-1", "other", "k", BODY)


def test_what_a_client_is_told_of_a_failure_and_of_a_dead_letter() -> None:
    def handler(payload: Any, work: Any) -> object:
        if payload.thing == "fails":
            return Failed("no-stock", "sold out")
        raise DeadLetter("unknown-thing", "a detail for people inside")

    door = Door(handler)
    failed = door.intake.accept("u", "note", "k1", '{"thing":"fails"}').operation.operation_id
    dead = door.intake.accept("u", "note", "k2", '{"thing":"dies"}').operation.operation_id
    outcomes = [door.run(body) for body in door.sent()]
    assert isinstance(outcomes[1], DeadLettered)
    seen = [door.intake.look("u", name) for name in (failed, dead)]
    assert [each.status for each in seen if each] == [OperationStatus.FAILED, OperationStatus.DEAD_LETTERED]
    assert [each.error for each in seen if each] == [
        {"code": "no-stock", "detail": "sold out"},
        {"code": "unknown-thing"},
    ]


def test_a_message_that_names_a_record_that_nobody_accepted_is_dead_lettered_with_that_reason() -> None:
    door = Door()
    envelope = {"job_type": "note", "idempotency_key": "k", "payload": {"thing": "a"}, "record": "0" * 64}
    outcome = door.run(json.dumps(envelope))
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == "not-accepted"
    assert door.world.thing("a") is None


def test_the_message_of_another_job_cannot_use_an_accepted_record() -> None:
    door = Door()
    door.intake.accept("user-1", "note", "k", BODY)
    (body,) = door.sent()
    forged = json.dumps({**json.loads(body), "idempotency_key": "another"})
    outcome = door.run(forged)
    assert isinstance(outcome, DeadLettered)
    assert door.world.database.records[record_id("user-1", "note", "k")].attempts == 0
    assert door.run(body) == Completed(1)
    door.world.clock.pass_(timedelta(days=1))


def test_r1_1_a_key_that_is_unique_while_active_names_the_next_job_after_the_end() -> None:
    door = Door(unique=Unique.WHILE_ACTIVE)
    first = door.intake.accept("user-1", "note", "k", BODY)
    again = door.intake.accept("user-1", "note", "k", BODY)
    assert (again.operation, again.replayed) == (first.operation, True)
    with pytest.raises(OtherPayloadForKey):
        door.intake.accept("user-1", "note", "k", '{"thing":"b"}')
    door.run(door.sent()[0])
    second = door.intake.accept("user-1", "note", "k", '{"thing":"b"}')
    assert (second.operation.status, second.replayed) == (OperationStatus.PENDING, False)
    assert second.operation.operation_id != first.operation.operation_id
    seen = door.intake.look("user-1", first.operation.operation_id)
    assert seen is not None
    assert seen.status is OperationStatus.DONE  # its own end stays as it was
    assert len(door.sent()) == 2
    assert door.run(door.sent()[0]) == Duplicate("completed")
    assert door.run(door.sent()[1]) == Completed(1)


def test_the_next_job_of_a_key_is_found_after_a_race_for_it() -> None:
    door = Door(unique=Unique.WHILE_ACTIVE)
    first = door.intake.accept("user-1", "note", "k", BODY)
    door.run(door.sent()[0])
    second = door.intake.accept("user-1", "note", "k", BODY)
    door.world.database.generation = lambda _: 0  # read before the second was accepted
    third = door.intake.accept("user-1", "note", "k", BODY)
    assert (third.operation, third.replayed) == (second.operation, True)
    assert first.operation.operation_id != second.operation.operation_id


def test_a_request_that_was_overtaken_by_a_later_generation_looks_again() -> None:
    door = Door(unique=Unique.WHILE_ACTIVE)
    door.intake.accept("user-1", "note", "k", BODY)
    door.run(door.sent()[0])
    second = door.intake.accept("user-1", "note", "k", BODY)
    door.world.clock.pass_(RETENTION)  # the first is forgotten, the second waits
    seen, generation = [0], door.world.database.generation
    door.world.database.generation = lambda base: seen.pop() if seen else generation(base)
    third = door.intake.accept("user-1", "note", "k", BODY)
    assert (third.operation, third.replayed) == (second.operation, True)


def test_a_message_that_names_its_record_never_begins_that_record_again() -> None:
    door = Door(unique=Unique.WHILE_ACTIVE)
    door.intake.accept("user-1", "note", "k", BODY)
    (sent,) = door.sent()
    assert door.run(sent) == Completed(1)
    door.world.clock.pass_(timedelta(hours=1))
    late = {"job_id": "another", "enqueued_at": door.world.clock.now().isoformat()}
    assert door.run(json.dumps({**json.loads(sent), **late})) == Duplicate("completed")


def test_g10_a_clients_job_is_rescued_as_its_owners() -> None:
    door = Door()
    accepted = door.intake.accept("user-1", "note", "k", BODY)
    door.world.clock.pass_(LOST_AFTER)
    before = door.sent()
    door.world.rescue_all()
    (anew,) = [body for body in door.sent() if body not in before]
    assert door.run(anew) == Completed(1)
    seen = door.intake.look("user-1", accepted.operation.operation_id)
    assert seen is not None
    assert seen.status is OperationStatus.DONE


def test_a_request_that_is_always_overtaken_is_asked_to_come_again() -> None:
    door = Door(unique=Unique.WHILE_ACTIVE)
    door.world.database.accept = lambda *_: Overtaken()
    with pytest.raises(Unavailable):
        door.intake.accept("user-1", "note", "k", BODY)


def test_r1_1_a_job_is_accepted_for_later_and_its_message_waits() -> None:
    door = Door()
    ahead = START + timedelta(days=2)
    receipt = door.intake.accept("user-1", "note", "k", BODY, run_at=ahead)
    assert receipt.operation.run_at == ahead
    (posting,) = door.world.database.outbox.values()
    assert posting.delay == timedelta(days=2)
    assert isinstance(door.run(posting.body), Postponed)
    door.world.clock.pass_(timedelta(days=2))
    assert door.run(posting.body) == Completed(1)
    seen = door.intake.look("user-1", receipt.operation.operation_id)
    assert seen is not None
    assert (seen.status, seen.run_at) == (OperationStatus.DONE, None)


def test_another_time_under_one_key_is_another_request_and_a_year_is_the_most() -> None:
    door = Door()
    door.intake.accept("user-1", "note", "k", BODY, run_at=START + timedelta(days=2))
    with pytest.raises(OtherPayloadForKey):
        door.intake.accept("user-1", "note", "k", BODY, run_at=START + timedelta(days=3))
    with pytest.raises(OtherPayloadForKey):
        door.intake.accept("user-1", "note", "k", BODY)
    with pytest.raises(Malformed, match="366 days"):
        door.intake.accept("user-1", "note", "far", BODY, run_at=START + timedelta(days=367))
    assert len(door.sent()) == 1


def never(_: object) -> None:
    raise Outdated(None)


def test_a_condition_gets_the_typed_payload_and_keeps_the_job_from_being_accepted() -> None:
    door = Door()
    seen: list[Any] = []

    def refused(payload: Any) -> None:
        seen.append(payload)
        never(payload)

    with pytest.raises(Outdated):
        door.intake.accept("user-1", "note", "k", BODY, condition=refused)
    assert [payload.thing for payload in seen] == ["a"]
    assert door.sent() == []
    assert door.intake.accept("user-1", "note", "k", BODY, condition=lambda _: None).replayed is False


@pytest.mark.parametrize("unique", Unique)
def test_whoever_repeats_a_request_is_answered_whatever_its_condition_says_now(unique: Unique) -> None:
    door = Door(unique=unique)
    first = door.intake.accept("user-1", "note", "k", BODY)
    again = door.intake.accept("user-1", "note", "k", BODY, condition=never)
    assert (again.operation.operation_id, again.replayed) == (first.operation.operation_id, True)


def test_a_key_whose_job_is_over_begins_the_next_only_if_the_condition_holds() -> None:
    door = Door(unique=Unique.WHILE_ACTIVE)
    door.intake.accept("user-1", "note", "k", BODY)
    (body,) = door.sent()
    door.run(body)
    with pytest.raises(Outdated):
        door.intake.accept("user-1", "note", "k", BODY, condition=never)
    assert len(door.sent()) == 1
