"""The worker `canary`: every file of events/canary on real stores, its rounds from the schedule to their end, and what they measure."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions import canary
from functions.canary import ASKED_FOR, CANARIES, canary_round
from infra.stage.settings import Stage, load_stage
from local.demo.situations import EVENTS
from local.outside.payment_provider import Provider
from shared.backends.memory.database import MemoryDatabase
from shared.outcome import Completed
from shared.pipeline.run import read_run
from shared.rounds.recurrence import Recurrence, Recurring
from tests.stack import Stack, new_stack
from tests.world import START, FakeClock, World, body

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from local.stack.valkey import Valkey

FILES = EVENTS.parent / "canary"
ROUND = Recurrence(canary_round.name, canary_round.version, canary.WORKER.name, str(canary_round.cron))


@pytest.fixture(scope="module")
def ended(aws_endpoint: str, valkey: Valkey) -> Iterator[Stack]:
    """All situations on one stack, sent at once and run to their end."""
    with Provider(0) as provider:  # nobody calls it
        stack = new_stack(valkey, provider, worker=canary.WORKER)
        for path in sorted(FILES.glob("*.json")):
            for record in json.loads(path.read_text(encoding="utf-8"))["Records"]:
                stack.send(record["body"])
        stack.run(patience=timedelta(seconds=120))
        yield stack


def test_each_probe_ends_as_it_asked_for(ended: Stack) -> None:
    items = ended.database.client.scan(TableName=ended.settings.jobs_table)["Items"]
    ends = {item["idempotency_key"]["S"]: (item["status"]["S"], item["attempts"]["N"]) for item in items}
    assert ends == {
        "round-1": ("completed", "1"),
        "smoke-1/completed": ("completed", "1"),
        "smoke-1/retried": ("completed", "2"),
        "smoke-1/failed": ("failed", "1"),
        "smoke-1/dead-lettered": ("dead-lettered", "1"),
    }
    assert ended.mapping.errors == []


def test_one_of_three_messages_has_an_effect(ended: Stack) -> None:
    items = ended.database.client.scan(TableName=ended.settings.tables["canaries"])["Items"]
    counts = {item["canary"]["S"]: (item["run"]["S"], int(float(item["count"]["N"]))) for item in items}
    assert counts == {"round": ("round", 1), "completed": ("1", 1), "retried": ("1", 1)}


def test_what_ends_badly_keeps_its_reason(ended: Stack) -> None:
    found = sorted((facts["reason"], facts["attempts"]) for _, facts in ended.dead_letters())
    assert found == [(ASKED_FOR, 1), ("invalid-payload", 0)]


def test_a_run_counts_from_one_and_a_round_goes_on() -> None:
    world = World(canary.WORKER)
    for run, number in (("a", 1), ("a", 2), ("b", 1)):
        name = f"{run}-{number}"
        text = body(job_type="smoke-probe", idempotency_key=name, payload={"run": run, "ends": "completed"})
        assert isinstance(world.execute(text), Completed)
        kept = world.database.items[CANARIES.name, ("completed",)].attributes
        assert (kept["run"], kept["count"]) == (run, number)
    for number in (1, 2, 3):
        assert isinstance(
            world.execute(body(job_type=canary_round.name, idempotency_key=f"r{number}", payload={})), Completed
        )
    assert world.database.items[CANARIES.name, ("round",)].attributes["count"] == 3


def test_the_sweeper_posts_a_round_a_minute_each_once() -> None:
    clock = FakeClock()
    database = MemoryDatabase(clock)
    recurring = Recurring(database, [ROUND], clock)
    for _ in range(180):
        recurring.post_due()
        clock.pass_(timedelta(seconds=20))
    assert len(database.outbox) == 60


@pytest.mark.parametrize(
    ("enqueued", "sent", "run_at", "expected"),
    [
        (START - timedelta(seconds=30), START - timedelta(seconds=2), None, 30),  # it waited in the outbox
        (None, START - timedelta(seconds=2), None, 2),
        (START + timedelta(hours=1), START - timedelta(seconds=2), None, 2),  # a producer's clock is ahead
        (START - timedelta(hours=1), START - timedelta(hours=1), START - timedelta(seconds=5), 5),
    ],
)
def test_how_long_it_took_counts_from_when_it_could_have_been_done(
    enqueued: datetime | None, sent: datetime, run_at: datetime | None, expected: int
) -> None:
    world = World(canary.WORKER)
    told: dict[str, timedelta] = {}
    world.telemetry.took = lambda metric, job_type, time: told.update({metric: time})  # type: ignore[method-assign]
    fields: dict[str, Any] = {"job_type": canary_round.name, "idempotency_key": "r", "payload": {}}
    for name, moment in (("enqueued_at", enqueued), ("run_at", run_at)):
        if moment is not None:
            fields[name] = moment.isoformat()
    system = {"SentTimestamp": str(int(sent.timestamp() * 1000)), "ApproximateReceiveCount": "1"}
    assert isinstance(world.execute(body(**fields), system=system), Completed)
    assert told["latency"] == timedelta(seconds=expected)


def test_what_was_replayed_counts_from_its_replay() -> None:
    world = World(canary.WORKER)
    sent = START - timedelta(seconds=4)
    asked = (START - timedelta(days=3)).isoformat()
    text = body(job_type=canary_round.name, idempotency_key="r", payload={}, enqueued_at=asked)
    system = {"SentTimestamp": str(int(sent.timestamp() * 1000)), "ApproximateReceiveCount": "1"}
    run = read_run(world.delivery(text, system=system, death=1), canary.WORKER.job_types, START)
    assert run.due_at == sent
    assert read_run(world.delivery(text, system=system), canary.WORKER.job_types, START).due_at == START - timedelta(
        days=3
    )


def test_a_stage_without_a_canary_has_the_worker_and_no_rounds() -> None:
    assert [each.cron for each in Stage(name="dev").at(canary.WORKER).jobs] == ["* * * * *", None]
    assert [each.cron for each in load_stage("local").at(canary.WORKER).jobs] == [None, None]
    other = replace(canary.WORKER, name="other")
    assert load_stage("local").at(other).jobs[0].cron is not None
