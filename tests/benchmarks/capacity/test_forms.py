"""The two forms of the model: each by hand, and both beside each other."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from benchmarks.capacity import quotas
from benchmarks.capacity.arrivals import bursts, poisson
from benchmarks.capacity.fluid import drain_seconds, flow
from benchmarks.capacity.seen import Seen, Timing
from benchmarks.capacity.shape import Origin
from benchmarks.capacity.simulation import Simulation
from benchmarks.capacity.spread import Spread
from tests.benchmarks.capacity.cases import plain, seeded, wide

WARM = Timing(cold=0)
SLOT = 10 / (0.5 + quotas.POLL.value)  # jobs a second of an invocation in full batches of half a second


def run(
    rate: float, seconds: float, *, origin: Origin = Origin.QUEUE, opens: float = 0, **settings: float | None
) -> Seen:
    """The discrete form."""
    made = Simulation(plain(origin=origin), wide(**settings), seeded(1), timing=WARM, opens=opens)
    return made.run(poisson(rate, seconds, seeded(2)), seconds)


def test_poisson_arrivals_have_their_rate_and_are_the_same_for_a_seed() -> None:
    first, second = (list(poisson(50, 100, seeded(3))) for _ in range(2))
    assert first == second == sorted(first)
    assert len(first) == pytest.approx(5000, rel=0.05)


def test_bursts_have_the_same_rate_in_few_moments() -> None:
    found = list(bursts(50, 100, seeded(3), every=10))
    assert len(found) == pytest.approx(5000, rel=0.1)
    assert len(set(found)) == 10


def test_a_run_is_the_same_for_its_seed() -> None:
    assert run(20, 30).latencies == run(20, 30).latencies


def test_a_lone_job_waits_for_its_poll_and_takes_its_time() -> None:
    seen = Simulation(plain(), wide(), seeded(1), timing=WARM).run([1.0], float("inf"))
    assert seen.latencies == [pytest.approx(0.5 + quotas.POLL.value)]


def test_a_cold_start_is_paid_once_for_each_environment() -> None:
    seen = Simulation(plain(), wide(), seeded(1), timing=Timing(cold=2)).run([1.0, 10.0], float("inf"))
    assert seen.latencies == [pytest.approx(2.5 + quotas.POLL.value), pytest.approx(0.5 + quotas.POLL.value)]
    assert seen.environments == 1


def test_little_holds_jobs_under_way_are_rate_times_time() -> None:
    seen = run(40, 300)
    under_way = seen.busy / 300 * seen.batch / (0.5 + quotas.POLL.value) * fmean(seen.latencies)
    assert under_way == pytest.approx(40 * fmean(seen.latencies), rel=0.05)
    assert seen.throughput(50, 300) == pytest.approx(40, rel=0.05)


def test_an_invocation_ends_with_its_longest_job() -> None:
    shape = replace(plain(), time=Spread.of([0.1, 0.9]))
    made = Simulation(shape, wide(max_concurrency=2), seeded(1), timing=WARM, opens=1)
    seen = made.run((0.0 for _ in range(40)), float("inf"))
    assert seen.batches == 4
    assert seen.busy == pytest.approx(4 * (0.9 + quotas.POLL.value))  # nine in a thousand have only short jobs


def test_a_window_fills_batches() -> None:
    assert run(20, 60, window=2.0).batch > 2 * run(20, 60).batch


def test_no_more_messages_are_in_flight_than_sqs_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "IN_FLIGHT", replace(quotas.IN_FLIGHT, value=25))
    seen = Simulation(plain(), wide(), seeded(1), timing=WARM).run((0.0 for _ in range(200)), float("inf"))
    assert seen.in_flight == 25
    assert len(seen.ended) == 200


def test_jobs_that_fail_once_come_back_and_end() -> None:
    timing = Timing(cold=0, postponed=0.3, retry=5)
    seen = Simulation(plain(), wide(), seeded(1), timing=timing).run(poisson(10, 30, seeded(2)), float("inf"))
    again = sum(latency > 5 for latency in seen.latencies)
    assert again == pytest.approx(0.3 * len(seen.latencies), rel=0.3)


@pytest.mark.parametrize("rate", [20, 60, 120])
def test_both_forms_carry_what_is_below_the_bounds(rate: float) -> None:
    drawn, fluid = run(rate, 200), flow(plain(), wide(), rate, seconds=200)
    assert drawn.throughput(100, 200) == pytest.approx(fluid.done, rel=0.05)
    assert fluid.waiting == 0
    assert drawn.oldest[-1] < 1


def test_both_forms_agree_on_a_backlog_behind_the_concurrency() -> None:
    drawn, fluid = run(200, 200, max_concurrency=5), flow(plain(), wide(max_concurrency=5), 200, seconds=200)
    assert fluid.done == pytest.approx(5 * SLOT)
    assert drawn.throughput(50, 200) == pytest.approx(fluid.done, rel=0.03)
    assert drawn.oldest[-1] == pytest.approx(fluid.oldest, rel=0.05)


def test_both_forms_agree_on_a_backlog_behind_a_rate() -> None:
    # One key of the index takes a thousand writes a second, and a job makes two.
    drawn = run(800, 40, origin=Origin.FRONT_DOOR, index_keys=1, max_concurrency=100)
    fluid = flow(plain(origin=Origin.FRONT_DOOR), wide(index_keys=1, max_concurrency=100), 800, seconds=40)
    assert fluid.done == pytest.approx(500)
    assert drawn.throughput(20, 40) == pytest.approx(500, rel=0.03)
    assert len(drawn.ended) / 40 == pytest.approx(500, rel=0.05)


def test_both_forms_agree_on_how_a_mapping_grows_under_a_sudden_load() -> None:
    drawn, fluid = run(600, 60), flow(plain(), wide(), 600, seconds=60)
    assert max(drawn.oldest) == pytest.approx(fluid.oldest_ever, rel=0.25)
    assert drawn.throughput(50, 60) == pytest.approx(600, rel=0.05)


def test_both_forms_agree_on_the_drain_of_an_outage() -> None:
    outage, rate = 60.0, 50.0
    fluid = drain_seconds(plain(), wide(max_concurrency=5), rate, outage)
    drawn = run(rate, 600, opens=outage, max_concurrency=5)
    assert fluid is not None
    assert fluid == pytest.approx(outage * rate / (5 * SLOT - rate), rel=0.05)
    first_empty = next(second for second, oldest in enumerate(drawn.oldest) if oldest < 1)
    assert first_empty == pytest.approx(fluid, rel=0.1)


def test_the_drain_is_the_backlog_over_what_is_free() -> None:
    assert drain_seconds(plain(), wide(max_concurrency=2), SLOT, 3600) == pytest.approx(3600, rel=0.01)
    assert drain_seconds(plain(), wide(max_concurrency=2), 2 * SLOT, 3600) is None


def test_age_never_falls_with_the_rate_nor_with_less_concurrency() -> None:
    ages = [flow(plain(), wide(max_concurrency=10), rate).oldest for rate in (10, 100, 1000, 10_000, 100_000)]
    assert ages == sorted(ages)
    narrow = [flow(plain(), wide(max_concurrency=most), 500).oldest for most in (1000, 20, 5, 2)]
    assert narrow == sorted(narrow)
