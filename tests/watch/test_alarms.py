"""Reading alarms from a template: what CloudWatch's documentation does not tell is refused."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from watch.alarms import Watch
from watch.series import Metrics, WatchError
from watch.state import State
from watch.template import resources

if TYPE_CHECKING:
    from watch.template import Template


def changed(template: Template, kind: str, word: str) -> tuple[Template, dict[str, Any]]:
    """A copy, and the properties of its first resource of a type whose name holds the word."""
    copied = copy.deepcopy(template)
    return copied, next(found for name, found in resources(copied, kind).items() if word in name)


def test_metrics_of_several_periods_are_refused(template: Template) -> None:
    copied, alarm = changed(template, "AWS::CloudWatch::Alarm", "DrainTime")
    alarm["Metrics"][0]["MetricStat"]["Period"] = 3600
    with pytest.raises(WatchError, match="of several periods"):
        Watch.of(copied)


def test_a_threshold_that_is_no_band_is_refused(template: Template) -> None:
    copied, alarm = changed(template, "AWS::CloudWatch::Alarm", "DepthOverBaseline")
    alarm["Metrics"][-1]["Expression"] = "watched * 2"
    with pytest.raises(WatchError, match="no ANOMALY_DETECTION_BAND"):
        Watch.of(copied)


def test_a_rule_of_a_composite_that_is_not_known_is_refused(template: Template) -> None:
    copied, alarm = changed(template, "AWS::CloudWatch::CompositeAlarm", "FastBurn")
    alarm["AlarmRule"] = 'NOT ALARM("x")'
    with pytest.raises(WatchError, match="is a rule"):
        Watch.of(copied)


def test_missing_data_of_dynamodb_is_no_news_whatever_its_alarms_say(watch: Watch) -> None:
    of_tables = [alarm for name, alarm in watch.alarms.items() if "TransactionConflicts" in name or "Table" in name]
    assert len(of_tables) > 3
    assert {alarm.missing for alarm in of_tables} == {"ignore"}


def test_a_table_that_was_throttled_and_sleeps_now_is_well_again(watch: Watch) -> None:
    alarm = next(alarm for name, alarm in watch.alarms.items() if "TableJobs" in name)
    metrics = Metrics(60)
    stat = next(stat for stat in alarm.stats.values() if stat.name.metric == "WriteThrottleEvents")
    for minute in range(10, 20):
        metrics.put(stat.name, minute, [5])
    states = alarm.history(metrics)
    assert states[15] is State.ALARM
    assert states[-1] is State.OK  # it would ring for ever if what is missing were not filled
