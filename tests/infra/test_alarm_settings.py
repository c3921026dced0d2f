"""Thresholds by their names, and the pages that show them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from functions.canary import WORKER as CANARY_WORKER
from functions.payments import WORKER
from infra.alarms.alarm import Alarm, Both, Missing, Severity
from infra.alarms.canary import canary_alarm
from infra.alarms.metric import Metric
from infra.alarms.page import ALARMS, DOOR_TIMEOUT, METRICS, alarms_page, groups, metrics_page
from infra.alarms.queues import Deployed, queue_alarms
from infra.constructs.front_door import SHAPE
from infra.stage.alarm_settings import AlarmSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

RESERVED = replace(WORKER, reserved_concurrency=50)  # which has an alarm of its own


def flat(settings: AlarmSettings) -> dict[str, Alarm]:
    """All alarms by what they are of and their names, parts of others included."""

    def of(alarms: Iterable[Alarm | Both]) -> list[Alarm]:
        return [part for each in alarms for part in ((each.long, each.short) if isinstance(each, Both) else (each,))]

    return {
        f"{title}: {alarm.name}": alarm for title, found in groups(RESERVED, settings).items() for alarm in of(found)
    }


@pytest.mark.parametrize("name", sorted(AlarmSettings.model_fields))
def test_every_setting_moves_an_alarm_that_names_it(name: str) -> None:
    usual = AlarmSettings()
    value = getattr(usual, name)
    other = value / 2 if isinstance(value, timedelta) or name == "objective" else value + 1
    other = value / 1000 if name.endswith("share") else other
    changed = usual.model_copy(update={name: other})
    before, after = flat(usual), flat(changed)
    moved = [alarm for key, alarm in after.items() if _what(alarm) != _what(before[key])]
    assert moved
    assert all(re.search(rf"\b{name}\b", alarm.setting) for alarm in moved), [alarm.setting for alarm in moved]


def _what(alarm: Alarm) -> tuple[object, ...]:
    return alarm.threshold, alarm.band, getattr(alarm.watched, "text", "")


def test_settings_read_from_json_take_seconds_and_refuse_what_they_do_not_know() -> None:
    read = AlarmSettings.model_validate({"outbox_lag": 600, "drain_time": "PT20M", "retry_share": 7.5})
    assert (read.outbox_lag, read.drain_time) == (timedelta(minutes=10), timedelta(minutes=20))
    with pytest.raises(ValidationError, match="retry_rate"):
        AlarmSettings.model_validate({"retry_rate": 7})
    for wrong in ({"retry_share": 0}, {"retry_share": 101}, {"in_flight": 120_000}, {"outbox_lag": 0}):
        with pytest.raises(ValidationError):
            AlarmSettings.model_validate(wrong)


def test_the_page_of_alarms_is_what_is_declared() -> None:
    assert ALARMS.read_text(encoding="utf-8") == alarms_page(WORKER), "run python -m infra.alarms.page"


def test_the_page_of_metrics_is_what_is_declared() -> None:
    assert METRICS.read_text(encoding="utf-8") == metrics_page(), "run python -m infra.alarms.page"


def test_dead_letters_of_the_canary_warn_since_a_smoke_test_makes_them() -> None:
    names = Deployed("source", "dead-letters", "function")
    for worker, severity in ((WORKER, Severity.PAGE), (CANARY_WORKER, Severity.WARN)):
        (arrival,) = [each for each in queue_alarms(worker, names, AlarmSettings()) if each.name == "DeadLetterArrival"]
        assert arrival.severity is severity


def test_the_alarm_of_a_canary_rings_at_its_patience_and_when_it_is_silent() -> None:
    took = Metric("Tahan", "canary_took", (("service", "canary"),))
    alarm = canary_alarm(took, AlarmSettings(canary_patience=timedelta(seconds=30)))
    assert (alarm.threshold, alarm.at_least, alarm.points) == (30_000, True, (2, 3))
    assert (alarm.missing, alarm.severity) == (Missing.BREACHING, Severity.PAGE)
    assert alarm.watched == took.by("Maximum")


def test_the_page_shows_the_front_doors_own_timeout() -> None:
    assert SHAPE.timeout == DOOR_TIMEOUT
