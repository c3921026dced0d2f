"""Versions of a payload side by side: earlier ones are brought to the current, whoever reads them first, and what cannot be is told."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.clock import Surroundings
from shared.declaring.upgrading import upgraded
from shared.errors import DeclarationError, Malformed
from shared.intake.request import Intake, OtherPayloadForKey
from shared.job import JobTypes, job
from shared.job_record import LOST_AFTER, SYSTEM, record_id
from shared.message import payload_of
from shared.outcome import Because, Completed, DeadLettered, Duplicate, Postponed, Retried
from shared.payload import Payload
from shared.strict_json import json_text
from shared.wire.parsing import read_message, typed_payload
from shared.worker import Worker
from tests.unit.json_values import Json
from tests.unit.times import TIMES
from tests.unit.versions import Third, renamed, split, third
from tests.world import Counter, World, body, event, failures, note_job, record_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.job import Job


class Second(Payload):
    """Version 2 of a note: `thing` is called `name`."""

    name: str
    text: str = "x"
    amount: Decimal = Decimal(0)


def second(
    *, upgrade: Callable[[dict[str, Any]], Any] = renamed, handler: Callable[[Second, Any], object] | None = None
) -> Job[Any, Any]:
    def run(payload: Second, work: Any) -> object:
        return {"name": payload.name} if handler is None else handler(payload, work)

    return job("note", version=2, upgrades={1: upgrade}, **TIMES)(run)


def read(declared: Job[Any, Any], payload: str, version: int = 1) -> Any:
    text = f'{{"job_type":"note","version":{version},"idempotency_key":"k","payload":{payload}}}'
    return typed_payload(read_message(text), JobTypes.of(declared))[1]


def world_of(declared: Job[Any, Any], shares: World | None = None) -> World:
    """A worker of this code; of a fleet that shares its stores with another."""
    world = World(Worker("notes", jobs=(declared,)))
    if shares is not None:
        world.database, world.clock, world.cache = shares.database, shares.clock, shares.cache
    return world


FIRST = body(payload={"thing": "a"})
COPY = body(version=2, payload={"name": "a"})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"version": 4, "upgrades": {1: renamed, 3: split}}, r"\[2\] are missing"),
        ({"version": 3, "upgrades": {1: renamed}}, r"\[2\] are missing"),
        ({"version": 2, "upgrades": {1: renamed, 2: split}}, "raise version to 3"),
        ({"version": 1, "upgrades": {1: renamed}}, "raise version to 2"),
        ({"version": 2, "upgrades": {0: renamed, 1: renamed}}, "begin at 1"),
        ({"version": 2, "upgrades": {1: "renamed"}}, r"upgrades\[1\] is a str"),
    ],
)
def test_upgrades_that_do_not_lead_to_the_current_version_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        third(**options)


def test_r2_7_each_earlier_version_is_brought_up_step_by_step() -> None:
    current = third()
    assert read(current, '{"thing":"a","text":"b c"}') == Third(name="a", lines=("b", "c"))
    assert read(current, '{"name":"a","text":"b c"}', 2) == Third(name="a", lines=("b", "c"))
    assert read(current, '{"name":"a","lines":["b"]}', 3) == Third(name="a", lines=("b",))


def test_what_is_older_than_the_oldest_upgrade_is_no_longer_read() -> None:
    current = third(upgrades={2: split})
    assert current.oldest == 2
    with pytest.raises(Malformed, match="schema-unsupported"):
        read(current, '{"thing":"a"}')
    assert read(current, '{"name":"a"}', 2).name == "a"


@pytest.mark.parametrize(
    "digits", ["30.40", "0.1", "1e-130", "12345678901234567890123456789012345678", "3.1400", "1e125"]
)
def test_pay_09_digits_come_through_an_upgrade_exactly(digits: str) -> None:
    seen: list[object] = []

    def watched(payload: dict[str, Any]) -> dict[str, Any]:
        seen.append(payload["amount"])
        return renamed(payload)

    typed = read(second(upgrade=watched), f'{{"thing":"a","amount":{digits}}}')
    assert str(typed.amount) == str(Decimal(digits))
    assert seen == [Decimal(digits)]


@given(st.dictionaries(st.text(max_size=5), Json, max_size=4))
def test_an_upgrade_that_changes_nothing_changes_nothing(payload: dict[str, Any]) -> None:
    declared = second(upgrade=lambda given: given)
    try:
        before = payload_of(json_text(payload))
    except Malformed:
        return
    assert upgraded(declared, 1, before) == before


def test_an_upgrade_may_compute_with_decimals() -> None:
    def doubled(payload: dict[str, Any]) -> dict[str, Any]:
        return {**renamed(payload), "amount": 2 * payload["amount"]}

    assert str(read(second(upgrade=doubled), '{"thing":"a","amount":0.1}').amount) == "0.2"
    assert str(read(second(upgrade=doubled), '{"thing":"a","amount":0.5}').amount) == "1"


def fails(payload: dict[str, Any]) -> dict[str, Any]:
    raise RuntimeError(payload)


def leaves(payload: dict[str, Any]) -> dict[str, Any]:
    raise SystemExit(1)


def endless(payload: dict[str, Any]) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    inner["inner"] = inner
    return inner


@pytest.mark.parametrize(
    "upgrade",
    [
        fails,
        leaves,
        endless,
        lambda payload: payload["missing"],
        lambda payload: None,
        lambda payload: [payload],
        lambda payload: {"name": 0.1},
        lambda payload: {"name": Decimal("NaN")},
        lambda payload: {"name": Decimal("1e200")},
        lambda payload: {"name": 10**39 + 1},
        lambda payload: {"name": "\ud83d"},
        lambda payload: {1: "a"},
        lambda payload: {"name": {"a"}},
    ],
)
def test_an_upgrade_that_fails_makes_a_dead_letter_with_its_reason_and_spares_the_batch(upgrade: Any) -> None:
    world = world_of(second(upgrade=upgrade))
    canary = body(payload={"thing": "canary"})
    answer = world.handle(
        event(record_of(canary, "m1"), record_of(body(version=2, idempotency_key="k2", payload={"name": "a"}), "m2"))
    )
    assert failures(answer) == []
    ((letter, reason),) = world.queue.dead
    assert (letter.body, json.loads(reason)["reason"]) == (canary, "upgrade-failed")
    assert "canary" not in reason
    assert world.database.view(record_id(SYSTEM, "note", "k2")).ended


def test_what_an_upgrade_gives_is_held_to_the_current_schema() -> None:
    outcome = world_of(second()).execute(body(payload={"thing": "a", "extra": 1}))
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == "invalid-payload"


def test_a_newer_version_waits_for_the_deploy_that_knows_it() -> None:
    outcome = world_of(second()).execute(body(version=3, payload={}))
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.NEWER_VERSION


@pytest.mark.parametrize(("first", "then"), [(FIRST, COPY), (COPY, FIRST)])
def test_copies_of_one_intent_in_two_versions_are_one_job(first: str, then: str) -> None:
    world = world_of(second())
    assert world.execute(first) == Completed(1)
    assert world.execute(then) == Duplicate("completed")


def test_ide_11_another_payload_of_an_earlier_version_is_found() -> None:
    world = world_of(second())
    assert world.execute(FIRST) == Completed(1)
    assert world.execute(body(payload={"text": "x", "thing": "a"})) == Duplicate("completed")  # the default, spelt out
    outcome = world.execute(body(payload={"thing": "b"}))
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == "idempotency-key-reused"


@pytest.mark.parametrize("newer_first", [False, True])
def test_i46_old_and_new_code_side_by_side_run_one_message_once(newer_first: bool) -> None:
    old = world_of(note_job(lock=None))
    new = world_of(second(), shares=old)
    one, other = (new, old) if newer_first else (old, new)
    assert one.execute(FIRST) == Completed(1)
    assert other.execute(FIRST) == Duplicate("completed")


@pytest.mark.parametrize("newer_first", [False, True])
def test_i46_a_retry_is_taken_over_by_the_other_code(newer_first: bool) -> None:
    tries: list[object] = []

    def once(payload: Any, work: Any) -> object:
        tries.append(payload)
        if len(tries) == 1:
            message = "the first time"
            raise ConnectionError(message)
        return {}

    old = world_of(note_job(once, lock=None))
    new = world_of(second(handler=once), shares=old)
    one, other = (new, old) if newer_first else (old, new)
    assert isinstance(one.execute(FIRST), Retried)
    old.clock.pass_(timedelta(minutes=20))
    assert other.execute(FIRST) == Completed(2)


def test_a_record_keeps_the_payload_as_it_came_with_its_version_and_it_is_rescued_so() -> None:
    def busy(payload: Any, work: Any) -> object:
        message = "not now"
        raise ConnectionError(message)

    world = world_of(second(handler=busy))
    world.execute(FIRST)
    view = world.database.view(record_id(SYSTEM, "note", "k1"))
    assert (view.version, view.payload) == (1, '{"thing":"a"}')
    world.clock.pass_(LOST_AFTER + timedelta(hours=1))
    world.rescue_all()
    (posting,) = world.database.outbox.values()
    again = world_of(second(), shares=world)
    assert again.execute(posting.body) == Completed(2)


def door_of(world: World) -> Intake:
    here = Surroundings(world.clock, Random(1), Counter())  # noqa: S311 - repeatable
    (declared,) = world.worker.jobs
    return Intake(JobTypes.of(declared), {"note": "notes"}, world.database, world.database, here)


def test_r2_7_a_client_that_never_heard_of_versions_goes_on_beside_those_who_name_theirs() -> None:
    world = world_of(second())
    intake = door_of(world)
    receipt = intake.accept("ann", "note", "k", '{"thing":"a"}')  # it has never heard of versions
    assert intake.accept("ann", "note", "k", '{"thing":"a"}', version=1).replayed
    assert intake.accept("ann", "note", "k", '{"name":"a"}', version=2).operation == receipt.operation
    with pytest.raises(OtherPayloadForKey):
        intake.accept("ann", "note", "k", '{"thing":"b"}')
    (posting,) = world.database.outbox.values()
    assert read_message(posting.body).version == 1
    assert world.execute(posting.body) == Completed(1)


@pytest.mark.parametrize(
    ("version", "payload", "reason"),
    [
        (3, '{"name":"a"}', "schema-unsupported"),
        (1, '{"thing":"a"}', "schema-unsupported"),
        (2, '{"thing":"a"}', "upgrade-failed"),
    ],
)
def test_a_version_that_is_not_read_is_refused_before_anything_is_written(
    version: int, payload: str, reason: str
) -> None:
    declared = second() if version == 3 else replace(third(), upgrades={2: fails})
    world = world_of(replace(declared, version=2 if version == 3 else 3))
    with pytest.raises(Malformed) as refusal:
        door_of(world).accept("ann", "note", "k", payload, version=version)
    assert refusal.value.reason == reason
    assert world.database.records == {}


def test_a_message_that_names_no_version_is_of_the_first() -> None:
    assert world_of(second()).execute(FIRST) == Completed(1)
