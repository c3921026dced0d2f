"""Alarms of every template: what they watch, what missing data means, whom they tell, and what to open then."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_sns as sns

from infra.alarms.alarm import Alarm, Runbook
from infra.alarms.metric import Expression, of_queue, own, total
from infra.constructs.alarms import Alarms
from infra.stage.settings import ROOT
from shared.backends.powertools import PowertoolsTelemetry
from shared.metrics import KINDS, Unit, Writer
from shared.telemetry import NO_JOB_TYPE
from tests.infra.alarm_names import name_of
from tests.infra.aws_metrics import KNOWN
from tests.infra.declared import ADDED, PAYING
from tests.infra.walk import plain, target, text

if TYPE_CHECKING:
    from tests.infra.walk import Json, Walk

DESCRIBED = re.compile(r"\[(page|warn)\] [A-Z].+\. Runbook: docs/runbooks/([a-z-]+)\.md")
# The table of alarms: how many periods of how many must breach, and what missing data means.
FINE, BREACHING, UNKNOWN = "notBreaching", "breaching", "missing"
TABLE = {
    "AttemptsLost": ((1, 1), FINE),
    "Canary": ((2, 3), BREACHING),
    "CacheBytes": ((5, 5), UNKNOWN),
    "CacheEvictions": ((1, 1), UNKNOWN),
    "CacheMismatches": ((1, 1), FINE),
    "CacheMisses": ((3, 5), FINE),
    "CacheThrottled": ((5, 5), UNKNOWN),
    "CacheUnits": ((5, 5), UNKNOWN),
    "Concurrency": ((3, 3), FINE),
    "Contention": ((3, 5), FINE),
    "DeadLetterAge": ((1, 1), FINE),
    "DeadLetterAgeWarning": ((1, 1), FINE),
    "DeadLetterArrival": ((1, 3), FINE),  # a minute whose data was late still counts
    "DeadLettersWaiting": ((1, 1), FINE),
    "DependencyFailures": ((3, 5), FINE),
    "DepthOverBaseline": ((10, 10), FINE),
    "DrainTime": ((5, 5), FINE),
    "Duplicates": ((1, 1), FINE),
    "DurationJump": ((3, 5), FINE),
    "Errors": ((3, 5), FINE),
    "ErrorsWarning": ((3, 5), FINE),
    "FastBurnLong": ((1, 1), FINE),
    "FastBurnShort": ((1, 1), FINE),
    "GaveUp": ((1, 1), FINE),
    "InFlight": ((3, 3), FINE),
    "InvalidationFailures": ((3, 5), FINE),
    "JobsLost": ((1, 1), FINE),
    "JobsStuck": ((1, 1), FINE),
    "Lag": ((3, 3), FINE),
    "LagWarning": ((3, 3), FINE),
    "Latency": ((5, 5), FINE),
    "LockHeld": ((1, 1), FINE),
    "NearTimeout": ((3, 5), FINE),
    "NoProgress": ((3, 5), FINE),
    "OutboxLag": ((2, 3), BREACHING),  # it speaks every minute, also when nothing waits
    "Parked": ((1, 1), FINE),
    "QueueAge": ((3, 5), FINE),
    "QueueAgeWarning": ((3, 5), FINE),
    "RecordFailures": ((3, 5), FINE),
    "Retries": ((1, 1), FINE),
    "ServerErrors": ((3, 5), FINE),
    "SlowBurnLong": ((1, 1), FINE),
    "SlowBurnShort": ((1, 1), FINE),
    "Table": ((3, 5), FINE),  # of each table
    "Throttled": ((5, 5), FINE),
    "TransactionConflicts": ((5, 5), FINE),
    "UnknownOutcomes": ((1, 1), FINE),
}
OF_THE_DOOR = {name for name in TABLE if name.startswith(("CacheMi", "FastBurn", "SlowBurn"))} | {
    "ServerErrors",
    "Latency",
}
RESERVED = {"Concurrency"}
DEPENDENT = {"DependencyFailures"}


def all_alarms(walk: Walk) -> dict[str, Json]:
    return walk.of("AWS::CloudWatch::Alarm")


def named(walk: Walk, name: str) -> list[Json]:
    return [alarm for logical, alarm in all_alarms(walk).items() if name_of(logical) == name]


def metrics_of(alarm: Json) -> dict[str, Json]:
    """The metrics of an alarm by their ids, each with statistic and period."""
    if "Metrics" not in alarm:
        statistic = alarm.get("Statistic") or alarm["ExtendedStatistic"]
        return {"": {"Metric": alarm, "Stat": statistic, "Period": alarm["Period"]}}
    return {part["Id"]: part["MetricStat"] for part in alarm["Metrics"] if "MetricStat" in part}


def expression(alarm: Json) -> str:
    """What an alarm computes, but for its band."""
    (found,) = [part["Expression"] for part in alarm["Metrics"] if part["Id"] == "watched"]
    return str(found)


def queue_of(alarm: Json) -> str:
    """The one queue that an alarm's metrics are of."""
    metrics = [found["Metric"] for found in metrics_of(alarm).values()]
    (queue,) = {target(d["Value"]) for m in metrics for d in m["Dimensions"] if d["Name"] == "QueueName"}
    return queue


def test_obs_07_every_alarm_has_the_points_and_the_missing_data_of_the_table(walk: Walk) -> None:
    for logical, alarm in all_alarms(walk).items():
        points, missing = TABLE[name_of(logical)]
        assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == points, logical
        assert alarm["TreatMissingData"] == missing, logical
    has_door, workers = bool(walk.of("AWS::ApiGatewayV2::Api")), walk.of("AWS::Lambda::Function").values()
    absent = set() if has_door else OF_THE_DOOR
    absent |= set() if any(f["Handler"] == "functions.canary.handler" for f in workers) else {"Canary"}
    absent |= set() if any("ReservedConcurrentExecutions" in f for f in workers) else RESERVED
    assert {name_of(logical) for logical in all_alarms(walk)} == TABLE.keys() - absent


def test_every_alarm_says_how_urgent_it_is_and_which_runbook_to_open(walk: Walk) -> None:
    composites = walk.of("AWS::CloudWatch::CompositeAlarm")
    for logical, alarm in {**all_alarms(walk), **composites}.items():
        found = DESCRIBED.fullmatch(alarm["AlarmDescription"])
        assert found, logical
        assert found[2] in set(Runbook)


def test_every_alarm_tells_the_topic_by_itself_or_through_the_one_that_it_is_a_part_of(walk: Walk) -> None:
    (topic,) = walk.of("AWS::SNS::Topic")
    composites = walk.of("AWS::CloudWatch::CompositeAlarm")
    parts = {part["Ref"] for c in composites.values() for part in c["AlarmRule"]["Fn::Join"][1] if "Ref" in part}
    for logical, alarm in {**all_alarms(walk), **composites}.items():
        told = [target(action) for action in alarm.get("AlarmActions", [])]
        assert told == ([] if logical in parts else [topic]), logical


def test_obs_06_every_dead_letter_queue_has_an_alarm_that_one_message_reaches(walk: Walk) -> None:
    waiting = named(walk, "DeadLettersWaiting")
    assert {queue_of(alarm) for alarm in waiting} == walk.dead_letter_queues()
    for alarm in waiting:
        assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/SQS", "ApproximateNumberOfMessagesVisible")
        assert (alarm["Statistic"], alarm["Period"]) == ("Maximum", 60)
        assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", 1)
    assert {queue_of(alarm) for alarm in named(walk, "DeadLetterAge")} == walk.dead_letter_queues()


def test_the_age_of_a_dead_letter_alarms_two_days_before_the_soonest_that_it_is_lost(walk: Walk) -> None:
    queues, day = walk.of("AWS::SQS::Queue"), 24 * 60 * 60
    by_dead = {target(q["RedrivePolicy"]["deadLetterTargetArn"]): q for q in queues.values() if "RedrivePolicy" in q}
    for alarm in named(walk, "DeadLetterAge"):
        dead = queue_of(alarm)
        # Moved at the last moment of its life in the source, and its retention counts from its first enqueue.
        left = queues[dead]["MessageRetentionPeriod"] - by_dead[dead]["MessageRetentionPeriod"]
        assert left - alarm["Threshold"] == 2 * day
        assert "lies there for 192 h; it may be lost in 48 h." in alarm["AlarmDescription"]
    page = (ROOT / "docs" / "runbooks" / "dead-letter-age.md").read_text(encoding="utf-8")
    assert "eight days" in page
    assert "two days" in page


def test_obs_06_no_alarm_counts_sent_messages_since_redrive_does_not(walk: Walk) -> None:
    assert "NumberOfMessagesSent" not in json.dumps(all_alarms(walk))


def test_every_arrival_in_a_dead_letter_queue_alarms_also_while_others_lie_there(walk: Walk) -> None:
    arrivals = named(walk, "DeadLetterArrival")
    assert {queue_of(alarm) for alarm in arrivals} == walk.dead_letter_queues()
    for alarm in arrivals:
        assert expression(alarm) == "IF(DIFF(FILL(visible, 0) + FILL(inflight, 0)) > 0, 1, 0) + FILL(dead, 0)"
        found = metrics_of(alarm)
        assert {name: part["Metric"]["MetricName"] for name, part in found.items()} == {
            "visible": "ApproximateNumberOfMessagesVisible",
            "inflight": "ApproximateNumberOfMessagesNotVisible",
            "dead": "dead_lettered",
        }
        assert {part["Period"] for part in found.values()} == {60}


def test_the_age_of_every_source_queue_is_watched_by_its_strictest_objective(walk: Walk) -> None:
    for name in ("QueueAge", "QueueAgeWarning", "NoProgress", "DepthOverBaseline", "DrainTime", "InFlight"):
        assert {queue_of(alarm) for alarm in named(walk, name)} == set(walk.source_queues())
    for alarm in named(walk, "QueueAge"):
        assert (alarm["MetricName"], alarm["Statistic"]) == ("ApproximateAgeOfOldestMessage", "Maximum")


def test_an_objective_is_the_declared_one_and_warned_of_at_half_of_it(declared: Walk) -> None:
    for name, threshold in (("QueueAge", PAYING.max_latency.total_seconds()), ("QueueAgeWarning", 600)):
        (paying,) = [a for a in named(declared, name) if plain(queue_of(a)) == "WorkerPayingQueuesSource"]
        assert paying["Threshold"] == threshold
    assert PAYING.max_latency == timedelta(seconds=1200)


@pytest.mark.parametrize(("name", "prefix"), [("relay", "OutboxRelayAlarms"), ("part-counter", "PartCounterAlarms")])
def test_what_reads_a_stream_is_watched_for_errors_lag_and_what_it_gave_up(walk: Walk, name: str, prefix: str) -> None:
    mapped, alarms = walk.streamed(name), {plain(logical): alarm for logical, alarm in all_alarms(walk).items()}
    for kind, metric in (("Errors", "Errors"), ("LagWarning", "IteratorAge"), ("Lag", "IteratorAge")):
        alarm = alarms[f"{prefix}{kind}"]
        assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Lambda", metric)
        assert target(alarm["Dimensions"][0]["Value"]) == walk.called(mapped["FunctionName"])
    given_up = alarms[f"{prefix}GaveUp"]
    assert queue_of(given_up) == target(mapped["DestinationConfig"]["OnFailure"]["Destination"])


def test_obs_07_every_alarm_looks_at_the_very_metrics_that_are_written_and_at_those_that_aws_has(
    walk: Walk, capsys: pytest.CaptureFixture[str]
) -> None:
    watched = [part["Metric"] for alarm in all_alarms(walk).values() for part in metrics_of(alarm).values()]
    ours: set[tuple[str, str]] = set()
    for metric in watched:
        dimensions = {d["Name"]: d["Value"] for d in metric["Dimensions"]}
        if metric["Namespace"] == "Tahan":
            ours.add((dimensions["service"], metric["MetricName"]))
            assert set(dimensions) == {"service"}
        else:
            assert tuple(dimensions) == KNOWN[metric["Namespace"], metric["MetricName"]]
    assert ours == {(service, name) for service, name in ours if writes(service, name)}
    written = set()
    for service, name in sorted(ours):
        telemetry = PowertoolsTelemetry(service)
        if KINDS[name].unit is Unit.COUNT:
            telemetry.count(name, NO_JOB_TYPE)
        else:
            telemetry.took(name, NO_JOB_TYPE, timedelta(minutes=6))
        telemetry.flush()
    for line in map(json.loads, capsys.readouterr().out.splitlines()):
        (metrics,) = line["_aws"]["CloudWatchMetrics"]
        assert metrics["Namespace"] == "Tahan"
        assert ["service"] in metrics["Dimensions"]
        written.add((line["service"], metrics["Metrics"][0]["Name"]))
    assert written == ours


def writes(service: str, name: str) -> bool:
    """Whether the service of that name writes the metric; all but the product's own are workers."""
    writer = Writer(service) if service in set(Writer) else Writer.WORKER
    return writer in KINDS[name].writers


def test_obs_07_a_heartbeat_that_is_missing_rings(walk: Walk) -> None:
    breaching = [alarm for alarm in all_alarms(walk).values() if alarm["TreatMissingData"] == "breaching"]
    found = {(part["Metric"]["MetricName"], part["Stat"]) for alarm in breaching for part in metrics_of(alarm).values()}
    canary = {("latency", "Maximum")} if "WorkerCanaryMapping" in map(plain, walk.mappings("SQS")) else set()
    assert found == {("outbox_lag", "Maximum")} | canary


def test_obs_10_an_alarm_watches_the_share_of_records_that_fail(walk: Walk) -> None:
    found = named(walk, "RecordFailures")
    assert len(found) == len(walk.source_queues())
    for alarm in found:
        assert {part["Metric"]["MetricName"] for part in metrics_of(alarm).values()} == {
            "records_failed",
            "records_succeeded",
        }
        assert expression(alarm).startswith("IF(FILL(part, 0) + FILL(done, 0) >= 20 AND FILL(part, 0) >= 3, 100 * ")


def test_all_metrics_of_an_expression_have_one_period_and_there_are_ten_at_the_most(walk: Walk) -> None:
    for alarm in all_alarms(walk).values():
        found = metrics_of(alarm)
        assert len({part["Period"] for part in found.values()}) == 1
        assert len(found) <= 10


def test_a_metric_that_nobody_writes_cannot_be_declared() -> None:
    with pytest.raises(KeyError, match="retires"):
        own("payments", "retires")


def test_an_expression_over_several_periods_is_refused() -> None:
    minute = of_queue("q", "ApproximateNumberOfMessagesVisible")
    mixed = Expression("a / b", {"a": minute, "b": minute.over(timedelta(hours=1))})
    with pytest.raises(ValueError, match="too many values"):
        _ = mixed.period


def test_a_baseline_is_a_band_over_what_is_watched(walk: Walk) -> None:
    for alarm in (*named(walk, "DepthOverBaseline"), *named(walk, "DurationJump")):
        returned = {part["Id"]: part.get("Expression") for part in alarm["Metrics"] if part["ReturnData"]}
        assert returned == {"watched": expression(alarm), "band": "ANOMALY_DETECTION_BAND(watched, 3)"}
        assert (alarm["ThresholdMetricId"], alarm["ComparisonOperator"]) == ("band", "GreaterThanUpperThreshold")
        assert "Threshold" not in alarm


def test_a_worker_added_by_the_public_construct_has_all_alarms_too(declared: Walk) -> None:
    added = {name_of(logical) for logical in all_alarms(declared) if logical.startswith("WorkerAddedAlarms")}
    paying = {name_of(logical) for logical in all_alarms(declared) if logical.startswith("WorkerPayingAlarms")}
    assert paying - added == RESERVED | DEPENDENT
    assert (ADDED.reserved_concurrency, ADDED.dependencies) == (None, ())


def test_an_alarm_is_described_in_one_shape() -> None:
    alarm = Alarm(
        name="A",
        watched=own("payments", "stuck"),
        threshold=0,
        setting="stuck",
        sentence="It is stuck.",
        runbook=Runbook.JOBS_STUCK,
    )
    assert alarm.description == "[warn] It is stuck. Runbook: docs/runbooks/jobs-stuck.md"


def dashboard(walk: Walk) -> Json:
    (found,) = walk.of("AWS::CloudWatch::Dashboard").values()
    return json.loads(text(found["DashboardBody"]))["widgets"]


def test_the_dashboard_shows_every_worker_in_every_section(declared: Walk) -> None:
    graphs = {w["properties"]["title"]: w["properties"] for w in dashboard(declared) if w["type"] == "metric"}
    everybody = {"paying", "reading", "in-order", "slow", "added"}
    for title in ("Completed, a minute", "Messages that wait", "Dead-lettered", "Age of the oldest message"):
        assert {row[-1].get("label") for row in graphs[title]["metrics"]} == everybody
    assert {row[-1]["label"] for row in graphs["Calls"]["metrics"]} == {"paying"}
    assert {row[-1]["label"] for row in graphs["Lag of the outbox and of the streams"]["metrics"]} == {
        "oldest message of the outbox",
        "outbox relay",
        "part counter",
    }


def test_the_dashboard_begins_with_every_alarm_that_tells_somebody(walk: Walk) -> None:
    first, *rest = dashboard(walk)
    assert first["type"] == "alarm"
    shown = [arn for w in (first, *rest) if w["type"] == "alarm" for arn in w["properties"]["alarms"]]
    composites = walk.of("AWS::CloudWatch::CompositeAlarm")
    telling = [name for name, a in {**all_alarms(walk), **composites}.items() if "AlarmActions" in a]
    assert sorted(arn.strip("<>").partition(".")[0] for arn in shown) == sorted(telling)
    assert all(len(w["properties"]["alarms"]) <= 100 for w in (first, *rest) if w["type"] == "alarm")


def test_every_metric_of_every_widget_is_one_that_aws_has_or_that_is_written(walk: Walk) -> None:
    graphs = [w["properties"] for w in dashboard(walk) if w["type"] == "metric"]
    assert all(graph["metrics"] for graph in graphs)
    metrics = [row for graph in graphs for row in graph["metrics"] if isinstance(row[0], str)]
    for namespace, name, *named_dimensions, _ in metrics:
        dimensions = dict(zip(named_dimensions[::2], named_dimensions[1::2], strict=True))
        if namespace == "Tahan":
            assert set(dimensions) == {"service"}
            assert writes(dimensions["service"], name)
        else:
            assert tuple(dimensions) == KNOWN[namespace, name]
    assert len(metrics) <= 2500  # of a dashboard; 500 of a widget
    assert max(len(graph["metrics"]) for graph in graphs) <= 500


def test_widgets_lie_beside_each_other_and_not_on_each_other(walk: Walk) -> None:
    taken: set[tuple[int, int]] = set()
    for widget in dashboard(walk):
        cells = {
            (x, y)
            for x in range(widget["x"], widget["x"] + widget["width"])
            for y in range(widget["y"], widget["y"] + widget["height"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_an_alarm_over_more_than_ten_metrics_is_refused() -> None:
    many = {f"m{place}": of_queue(f"queue-{place}", "ApproximateNumberOfMessagesVisible") for place in range(11)}
    alarm = Alarm(
        name="TooMany", watched=total(many), threshold=0, setting="", sentence="It rings.", runbook=Runbook.QUEUE_AGE
    )
    stack = Stack(App(), "Refused")
    with pytest.raises(ValueError, match="'TooMany' is over 11 metrics, CloudWatch takes 10"):
        Alarms(stack, "Alarms", [alarm], topic=sns.Topic(stack, "Topic"))
