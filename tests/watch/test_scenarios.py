"""Every alarm of the synthesised template rings when it must, is silent again afterwards, and at no other time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.infra.alarm_names import name_of
from watch.alarms import rings
from watch.healthy import NIGHT, healthy, load
from watch.scenarios import BEGIN, SCENARIOS, Change, Scenario
from watch.series import Metrics
from watch.state import State
from watch.usual import DAY

if TYPE_CHECKING:
    from watch.alarms import Watch
    from watch.series import Name


@pytest.fixture(scope="module")
def names(watch: Watch) -> list[Name]:
    return list({stat.name for stat in watch.names})


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_rings_its_alarms_and_no_others_and_all_are_silent_at_its_end(
    watch: Watch, names: list[Name], scenario: Scenario
) -> None:
    histories = watch.histories(scenario.play(names))
    rung = {logical: rings(states) for logical, states in histories.items() if rings(states)}
    wanted = {logical for logical in histories if name_of(logical) in scenario.rings}
    assert wanted - rung.keys() == set()
    assert {name_of(logical) for logical in rung} - scenario.rings == set()
    assert {logical for logical, states in histories.items() if states[-1] is not State.OK} == set()
    assert min(minute for minutes in rung.values() for minute in minutes) >= scenario.changes[0].during.start


def test_every_alarm_of_the_template_is_driven_by_a_scenario(watch: Watch) -> None:
    driven = set().union(*(scenario.rings for scenario in SCENARIOS))
    assert {name_of(logical) for logical in (*watch.alarms, *watch.composites)} == driven


def test_a_healthy_day_with_its_wave_and_an_idle_night_raises_no_alarm(watch: Watch, names: list[Name]) -> None:
    day = healthy(names, 2 * DAY)  # the second of them begins with nothing left of the first
    assert {load(minute) for minute in NIGHT} == {0}
    assert max(map(load, range(DAY))) > 50
    histories = watch.histories(day)
    assert {logical for logical, states in histories.items() if State.ALARM in states[5:]} == set()
    assert all(states[-1] is State.OK for states in histories.values())


def one_day(names: list[Name], *changes: Change, minutes: int = 180) -> Metrics:
    return Scenario("", changes, frozenset(), minutes=minutes).play(names)


def test_a_second_dead_letter_rings_while_the_first_lies_there_also_while_one_is_being_read(
    watch: Watch, names: list[Name]
) -> None:
    visible, hidden = "ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"
    dead = "QueuesDeadLetters"
    metrics = one_day(
        names,
        Change(visible, (1,), range(30, 60), dead),
        Change(hidden, (1,), range(60, 62), dead),  # somebody lists them: the one is hidden for two minutes
        Change(visible, (0,), range(60, 62), dead),
        Change(visible, (1,), range(62, 90), dead),
        Change(visible, (2,), range(90, 180), dead),
    )
    for logical, states in watch.histories(metrics).items():
        if name_of(logical) == "DeadLetterArrival":
            assert rings(states) == [30, 90]


def test_a_dead_letter_that_comes_while_another_is_discarded_rings_by_the_consumers_word(
    watch: Watch, names: list[Name]
) -> None:
    metrics = one_day(
        names,
        Change("ApproximateNumberOfMessagesVisible", (1,), range(180), "QueuesDeadLetters"),
        Change("dead_lettered", (1,), range(100, 101)),
    )
    arrivals = [s for logical, s in watch.histories(metrics).items() if name_of(logical) == "DeadLetterArrival"]
    assert all(100 in rings(states) for states in arrivals)


def test_one_retry_in_a_quiet_hour_rings_nothing(watch: Watch, names: list[Name]) -> None:
    metrics = Metrics(60, 3 * 60)  # nothing else happens
    for name in names:
        if name.metric in {"retried", "records_failed", "Invocations"}:
            metrics.put(name, 30, [1])
        if name.metric in {"outbox_lag", "latency"}:  # which speak every minute
            for minute in range(60):
                metrics.put(name, minute, [0])
    assert [n for n, states in watch.histories(metrics).items() if State.ALARM in states[5:]] == []


def test_a_queue_that_sleeps_is_neither_red_nor_grey(watch: Watch, names: list[Name]) -> None:
    metrics = healthy(names, 60, begin=0)
    own = {stat.name.namespace: None for stat in watch.names}
    assert {"AWS/SQS", "Tahan"} <= own.keys()
    for logical, states in watch.histories(metrics).items():
        assert set(states[5:]) == {State.OK}, logical


def test_obs_07_the_alarm_of_a_dead_sweeper_rings_within_five_minutes_and_only_that(
    watch: Watch, names: list[Name]
) -> None:
    metrics = one_day(names, Change("outbox_lag", (), range(60, 180)))
    rung = {name_of(logical): rings(states) for logical, states in watch.histories(metrics).items() if rings(states)}
    assert rung == {"OutboxLag": [63]}  # what is real is taken before anything is filled in


def test_obs_10_a_third_of_the_records_failing_rings_though_no_invocation_does(watch: Watch, names: list[Name]) -> None:
    metrics = one_day(
        names,
        Change("records_failed", (15,), range(60, 80)),
        Change("records_succeeded", (35,), range(60, 80)),
    )
    rung = {name_of(logical) for logical, states in watch.histories(metrics).items() if rings(states)}
    assert rung == {"RecordFailures"}
    assert BEGIN == 14 * 60
