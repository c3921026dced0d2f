"""The list of metrics: what is written is in it, what is in it is written, and people and things are never dimensions."""

from __future__ import annotations

import ast
import json
from datetime import timedelta
from pathlib import Path

import pytest

import shared
from shared.backends.powertools import PowertoolsTelemetry
from shared.errors import DeadLetter, RetryLater
from shared.gate import Turned
from shared.job_record import Status
from shared.metrics import KINDS, most_metrics
from shared.outcome import Failed
from shared.pipeline.reporting import WATCHED
from shared.rounds.brake import BrakeState
from shared.telemetry import NO_JOB_TYPE, Silent
from tests.world import Note, World, acquired, body, event, record_of

ROOT = Path(shared.__file__).parent.parent
# Spelled out of a value: what became of a delivery, of a call, of a queue.
SPELLED = {
    *(because.replace("-", "_") for because in WATCHED),
    *(f"turned_away_{why.value}" for why in Turned),
    *(f"queue_{state.value}" for state in BrakeState),
    "unknown",
    "waiting",
    "cancelled",
}


def literals() -> set[str]:
    """Every text that stands in the product's source."""
    files = [*ROOT.glob("shared/**/*.py"), *ROOT.glob("functions/**/*.py")]
    return {
        node.value
        for file in files
        if file.name != "metrics.py"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_metric_of_the_list_is_written_somewhere() -> None:
    assert KINDS.keys() - SPELLED - literals() == set()


def test_the_twin_refuses_a_metric_that_is_in_no_list() -> None:
    with pytest.raises(KeyError, match="add it to shared/metrics"):
        Silent().count("misspelled", NO_JOB_TYPE)
    with pytest.raises(KeyError, match="no metric of unit Milliseconds"):
        Silent().took("succeeded", NO_JOB_TYPE, timedelta(seconds=1))


def fails_at_times(payload: Note, _work: object) -> object:
    number = int(payload.thing)
    if number % 7 == 0:
        raise RetryLater("once more")
    if number % 11 == 0:
        raise DeadLetter("never")
    return Failed("no-money") if number % 13 == 0 else {"done": number}


def test_obs_03_a_thousand_operations_of_three_hundred_tenants_make_few_metrics(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = World.of(fails_at_times)
    world.telemetry = PowertoolsTelemetry("notes")  # type: ignore[assignment]
    for batch in range(100):
        records = [
            record_of(
                body(
                    idempotency_key=f"key-{number}",
                    payload={"thing": str(number)},
                    format=2,
                    tenant=f"tenant-{number % 300}",
                ),
                f"m{number}",
            )
            for number in range(batch * 10, batch * 10 + 10)
        ]
        world.handle(event(*records))
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines() if '"_aws"' in text]
    metrics = {
        (metric["Name"], tuple((name, line[name]) for name in dimensions))
        for line in lines
        for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]
        for dimensions in line["_aws"]["CloudWatchMetrics"][0]["Dimensions"]
    }
    assert sum(sum(line.get("records_succeeded", [0])) for line in lines) > 700
    assert len(metrics) <= 60 <= most_metrics(1)
    assert not any("tenant" in line or "key" in line for line in lines)


def test_a_worker_of_ten_job_types_stays_within_the_documented_number() -> None:
    assert most_metrics(1) == 114
    assert most_metrics(10) == 366


def test_obs_10_the_records_of_a_batch_are_counted_once_each_as_failed_or_succeeded() -> None:
    def third(payload: Note, _work: object) -> object:
        if payload.thing in {"2", "5", "8"}:
            raise RetryLater("once more")
        return None

    world = World.of(third)
    answer = world.handle(event(*(a_record(number) for number in range(10))))
    assert len(answer["batchItemFailures"]) == 3
    assert world.telemetry.counts["records_failed", NO_JOB_TYPE] == 3
    assert world.telemetry.counts["records_succeeded", NO_JOB_TYPE] == 7


def test_obs_10_a_batch_whose_records_all_fail_is_counted_once() -> None:
    world = World.of(lambda _payload, _work: (_ for _ in ()).throw(DeadLetter("never")))
    answer = world.handle(event(*(a_record(number) for number in range(10))))
    assert answer == {"batchItemFailures": []}  # each is dead-lettered, and acknowledged
    assert world.telemetry.counts["records_failed", NO_JOB_TYPE] == 10
    assert world.telemetry.counts["records_succeeded", NO_JOB_TYPE] == 0


def test_obs_10_a_fault_of_the_pipeline_fails_its_record() -> None:
    world = World.of()
    world.queue.hide = None
    world.database.claim = None
    world.handle(event(a_record(1)))
    assert world.telemetry.counts["records_failed", NO_JOB_TYPE] == 1


def test_a_postponed_record_is_neither() -> None:
    world = World.of()
    acquired(world.cache, "thing/1", "another", timedelta(minutes=1))
    world.handle(event(a_record(1)))
    assert world.telemetry.counts["contended", "note"] == 1
    assert world.telemetry.counts["postponed", "note"] == 1
    assert not any(world.telemetry.counts[name, NO_JOB_TYPE] for name in ("records_failed", "records_succeeded"))


def test_a_job_is_stuck_once_it_comes_back_after_twice_its_objective() -> None:
    def never(_payload: Note, _work: object) -> object:
        raise RetryLater("once more", after=timedelta(seconds=1))

    world = World.of(never)
    world.execute(body())
    world.clock.pass_(timedelta(minutes=2))  # just twice the objective
    world.execute(body())
    assert world.telemetry.counts["stuck", "note"] == 0
    world.clock.pass_(timedelta(seconds=1))
    world.execute(body(idempotency_key="k2"))
    assert world.telemetry.counts["stuck", "note"] == 1


def test_a_job_that_may_not_run_yet_is_not_stuck() -> None:
    world = World.of()
    world.clock.pass_(timedelta(hours=1))
    later = (world.clock.now() + timedelta(minutes=5)).isoformat()
    world.execute(body(run_at=later))
    assert world.telemetry.counts["postponed", "note"] == 1
    assert world.telemetry.counts["stuck", "note"] == 0


def test_an_attempt_after_one_that_ended_without_a_word_counts_an_expiry() -> None:
    deaths = [KeyboardInterrupt()]

    def dies(_payload: Note, _work: object) -> object:
        if deaths:
            raise deaths.pop()
        return None

    world = World.of(dies)
    with pytest.raises(KeyboardInterrupt):
        world.execute(body())
    world.clock.pass_(timedelta(minutes=10))
    world.execute(body())
    assert world.telemetry.counts["visibility_expired", "note"] == 1
    assert world.telemetry.counts["succeeded", "note"] == 1


def test_a_retry_that_was_told_of_is_no_expiry() -> None:
    failures: list[Exception] = [RetryLater("once", after=timedelta(seconds=1)), RetryLater("more")]

    def tries(_payload: Note, _work: object) -> object:
        if failures:
            raise failures.pop()
        return None

    world = World.of(tries)
    for _ in range(3):
        world.execute(body())
        world.clock.pass_(timedelta(minutes=10))
    assert world.telemetry.counts["succeeded", "note"] == 1
    assert world.telemetry.counts["visibility_expired", "note"] == 0


def test_a_business_failure_is_counted_and_no_failure_of_ours() -> None:
    world = World.of(lambda _payload, _work: Failed("no-money"))
    world.execute(body())
    assert world.database.view(next(iter(world.database.records))).status is Status.FAILED
    assert (world.telemetry.counts["failed", "note"], world.telemetry.counts["succeeded", "note"]) == (1, 1)


def a_record(number: int) -> dict[str, object]:
    return record_of(body(idempotency_key=f"key-{number}", payload={"thing": str(number)}), f"m{number}")
