"""Alarms of every template: what they watch, what missing data means, whom they tell, and what to open then."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from infra.settings import ROOT
from shared.backends.powertools import PowertoolsTelemetry
from shared.telemetry import NO_JOB_TYPE
from tests.infra.declared import PAYING
from tests.infra.walk import plain, target, text

if TYPE_CHECKING:
    from tests.infra.walk import Json, Walk

RUNBOOK = re.compile(r"Runbook: docs/runbooks/([a-z-]+)\.md$")
# What each alarm is: (threshold, comparison, breaches of periods, missing data).
KINDS = {
    "dead-letter-age": (691_200, ">", (1, 1), "notBreaching"),
    "dead-letter-arrival": (0, ">", (1, 3), "notBreaching"),  # a minute whose data was late still counts
    "dead-letters-waiting": (1, ">=", (1, 1), "notBreaching"),
    "front-door-errors": (0, ">", (3, 5), "notBreaching"),
    "jobs-lost": (0, ">", (1, 1), "notBreaching"),
    "outbox-parked": (0, ">", (1, 1), "notBreaching"),
    "outbox-lag": (300_000, ">", (2, 3), "breaching"),  # it speaks every minute, also when nothing waits
    "part-counter-errors": (0, ">", (3, 5), "notBreaching"),
    "part-counter-gave-up": (1, ">=", (1, 1), "notBreaching"),
    "part-counter-lag": (60_000, ">", (3, 3), "notBreaching"),
    "queue-age": (None, ">", (3, 5), "notBreaching"),
    "relay-errors": (0, ">", (3, 5), "notBreaching"),
    "relay-gave-up": (1, ">=", (1, 1), "notBreaching"),
    "relay-lag": (60_000, ">", (3, 3), "notBreaching"),
}
SIGNS = {"GreaterThanThreshold": ">", "GreaterThanOrEqualToThreshold": ">="}


def runbook(alarm: Json) -> str:
    found = RUNBOOK.search(alarm["AlarmDescription"])
    assert found, alarm["AlarmDescription"]
    return found[1]


def alarms(walk: Walk, kind: str) -> list[Json]:
    return [alarm for alarm in walk.of("AWS::CloudWatch::Alarm").values() if runbook(alarm) == kind]


def queue_of(alarm: Json) -> str:
    """The one queue that an alarm's metrics are of."""
    metrics = [part["MetricStat"]["Metric"] for part in alarm.get("Metrics", []) if "MetricStat" in part] or [alarm]
    (queue,) = {target(d["Value"]) for m in metrics for d in m["Dimensions"]}
    return queue


def test_obs_07_every_alarm_is_of_a_known_kind_with_its_missing_data_chosen(walk: Walk) -> None:
    seen = set()
    for alarm in walk.of("AWS::CloudWatch::Alarm").values():
        threshold, sign, points, missing = KINDS[runbook(alarm)]
        seen.add(runbook(alarm))
        assert threshold is None or alarm["Threshold"] == threshold
        assert SIGNS[alarm["ComparisonOperator"]] == sign
        assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == points
        assert alarm["TreatMissingData"] == missing
    assert seen == set(KINDS) - (set() if walk.of("AWS::ApiGatewayV2::Api") else {"front-door-errors"})


def test_every_alarm_tells_the_topic(walk: Walk) -> None:
    (topic,) = walk.of("AWS::SNS::Topic")
    for alarm in walk.of("AWS::CloudWatch::Alarm").values():
        assert [target(action) for action in alarm["AlarmActions"]] == [topic]


def test_obs_06_every_dead_letter_queue_has_an_alarm_that_one_message_reaches(walk: Walk) -> None:
    waiting = alarms(walk, "dead-letters-waiting")
    assert {queue_of(alarm) for alarm in waiting} == walk.dead_letter_queues()
    for alarm in waiting:
        assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/SQS", "ApproximateNumberOfMessagesVisible")
        assert (alarm["Statistic"], alarm["Period"]) == ("Maximum", 60)
    assert {queue_of(alarm) for alarm in alarms(walk, "dead-letter-age")} == walk.dead_letter_queues()


def test_the_age_of_a_dead_letter_alarms_two_days_before_the_soonest_that_it_is_lost(walk: Walk) -> None:
    queues, day = walk.of("AWS::SQS::Queue"), 24 * 60 * 60
    by_dead = {target(q["RedrivePolicy"]["deadLetterTargetArn"]): q for q in queues.values() if "RedrivePolicy" in q}
    for alarm in alarms(walk, "dead-letter-age"):
        dead = queue_of(alarm)
        # Moved at the last moment of its life in the source, and its retention counts from its first enqueue.
        left = queues[dead]["MessageRetentionPeriod"] - by_dead[dead]["MessageRetentionPeriod"]
        assert left - alarm["Threshold"] == 2 * day
        assert "lies there for 8 days; it may be lost in 2." in alarm["AlarmDescription"]
        page = (ROOT / "docs" / "runbooks" / f"{runbook(alarm)}.md").read_text(encoding="utf-8")
        assert "eight days" in page
        assert "two days" in page


def test_obs_06_no_alarm_counts_sent_messages_since_redrive_does_not(walk: Walk) -> None:
    assert "NumberOfMessagesSent" not in json.dumps(walk.of("AWS::CloudWatch::Alarm"))


def test_every_arrival_in_a_dead_letter_queue_alarms_also_while_others_lie_there(walk: Walk) -> None:
    arrivals = alarms(walk, "dead-letter-arrival")
    assert {queue_of(alarm) for alarm in arrivals} == walk.dead_letter_queues()
    for alarm in arrivals:
        by_id = {part["Id"]: part for part in alarm["Metrics"]}
        (rise,) = [part for part in alarm["Metrics"] if part.get("ReturnData", True)]
        assert rise["Expression"] == "DIFF(FILL(visible, 0) + FILL(inflight, 0))"
        names = {i: by_id[i]["MetricStat"]["Metric"]["MetricName"] for i in ("visible", "inflight")}
        assert names == {
            "visible": "ApproximateNumberOfMessagesVisible",
            "inflight": "ApproximateNumberOfMessagesNotVisible",
        }
        assert {by_id[i]["MetricStat"]["Period"] for i in names} == {60}


def test_the_age_of_every_source_queue_is_watched_by_its_strictest_objective(walk: Walk) -> None:
    assert {queue_of(alarm) for alarm in alarms(walk, "queue-age")} == set(walk.source_queues())
    for alarm in alarms(walk, "queue-age"):
        assert (alarm["MetricName"], alarm["Statistic"]) == ("ApproximateAgeOfOldestMessage", "Maximum")


def test_an_objective_is_the_declared_one(declared: Walk) -> None:
    (paying,) = [a for a in alarms(declared, "queue-age") if plain(queue_of(a)) == "WorkerPayingQueuesSource"]
    assert paying["Threshold"] == PAYING.max_latency.total_seconds() == 1200


@pytest.mark.parametrize("name", ["relay", "part-counter"])
def test_what_reads_a_stream_is_watched_for_errors_lag_and_what_it_gave_up(walk: Walk, name: str) -> None:
    mapped = walk.streamed(name)
    for kind, metric in ((f"{name}-errors", "Errors"), (f"{name}-lag", "IteratorAge")):
        (alarm,) = alarms(walk, kind)
        assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Lambda", metric)
        assert target(alarm["Dimensions"][0]["Value"]) == walk.called(mapped["FunctionName"])
    (gave_up,) = alarms(walk, f"{name}-gave-up")
    assert queue_of(gave_up) == target(mapped["DestinationConfig"]["OnFailure"]["Destination"])


def test_the_dashboard_shows_every_worker_and_the_relay(declared: Walk) -> None:
    (dashboard,) = declared.of("AWS::CloudWatch::Dashboard").values()
    titles = {w["properties"]["title"] for w in json.loads(text(dashboard["DashboardBody"]))["widgets"]}
    for worker in ("paying", "reading", "in-order", "slow", "added"):
        assert {t.partition(": ")[2] for t in titles if t.startswith(f"{worker}: ")} == {
            "sent and deleted",
            "depth",
            "age of the oldest message",
            "dead letters",
            "errors and throttles",
            "duration",
        }
    for name in ("outbox relay", "part counter"):
        assert {f"{name}: lag", f"{name}: errors", f"{name}: given up"} <= titles


def test_every_kind_of_alarm_has_its_runbook_and_no_runbook_is_without_an_alarm() -> None:
    assert {path.stem for path in (ROOT / "docs" / "runbooks").glob("*.md")} == set(KINDS)


def test_obs_07_the_alarm_of_the_outbox_looks_at_the_very_metric_that_the_sweeper_writes(
    walk: Walk, capsys: pytest.CaptureFixture[str]
) -> None:
    (lag,) = alarms(walk, "outbox-lag")
    telemetry = PowertoolsTelemetry("outbox-sweeper")
    telemetry.took("outbox_lag", NO_JOB_TYPE, timedelta(minutes=6))
    telemetry.flush()
    (line,) = [text for text in capsys.readouterr().out.splitlines() if '"outbox_lag"' in text]
    written = json.loads(line)
    (metrics,) = written["_aws"]["CloudWatchMetrics"]
    assert (lag["Namespace"], lag["MetricName"]) == (metrics["Namespace"], metrics["Metrics"][0]["Name"])
    (dimensions,) = metrics["Dimensions"]
    assert {d["Name"]: d["Value"] for d in lag["Dimensions"]} == {name: written[name] for name in dimensions}
    assert written["outbox_lag"] == [360_000.0]
    assert written["outbox_lag"][0] > lag["Threshold"]


@pytest.mark.parametrize(
    ("kind", "metric", "services"),
    [
        ("jobs-lost", "job_lost", {"outbox-sweeper"}),
        ("outbox-parked", "parked", {"outbox-relay", "outbox-sweeper"}),
    ],
)
def test_the_alarms_of_the_senders_look_at_the_very_metrics_that_they_write(
    walk: Walk, capsys: pytest.CaptureFixture[str], kind: str, metric: str, services: set[str]
) -> None:
    found = alarms(walk, kind)
    for service in sorted(services):
        telemetry = PowertoolsTelemetry(service)
        telemetry.count(metric, NO_JOB_TYPE)
        telemetry.flush()
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines() if f'"{metric}"' in text]
    watched = [{d["Name"]: d["Value"] for d in alarm["Dimensions"]} for alarm in found]
    written = [{name: line[name] for name in line["_aws"]["CloudWatchMetrics"][0]["Dimensions"][0]} for line in lines]
    assert sorted(watched, key=lambda d: d["service"]) == sorted(written, key=lambda d: d["service"])
    assert {alarm["MetricName"] for alarm in found} == {metric}
