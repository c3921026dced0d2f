"""Plans: they carry their rate, say what must change, and tell what stands in the way."""

from __future__ import annotations

import json

import pytest

from benchmarks.capacity.__main__ import main
from benchmarks.capacity.curves import point
from benchmarks.capacity.deployment import Deployment
from benchmarks.capacity.dollars import of_a_million_jobs
from benchmarks.capacity.fluid import flow
from benchmarks.capacity.limits import limits_of
from benchmarks.capacity.plan import Where, plan, settings_of
from benchmarks.capacity.shape import Origin, counted_workers, shape_of
from benchmarks.cost import of_a_million
from benchmarks.cost_counts import kept
from infra.stage.settings import Stage
from tests.benchmarks.capacity.cases import PAYMENTS, USERS

NAMES = [worker.name for worker in counted_workers()]


@pytest.mark.parametrize("worker", counted_workers(), ids=lambda worker: worker.name)
@pytest.mark.parametrize("origin", Origin)
@pytest.mark.parametrize("rate", [10.0, 500.0, 5000.0])
def test_a_plan_lifts_every_bound_over_the_rate_or_names_it(worker, origin, rate) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    shape = shape_of(worker, origin)
    made = plan(shape, Deployment.of(worker), rate)
    below = [limit for limit in limits_of(shape, made.deployment) if limit.jobs < made.wanted]
    assert list(made.in_the_way) == below
    if not below:
        assert flow(shape, made.deployment, rate).waiting == 0


def test_what_is_declared_is_left_alone_where_it_carries_the_rate() -> None:
    assert plan(shape_of(USERS), Deployment.of(USERS), 10).changes == ()


def test_the_plan_of_payments_asks_their_provider_first() -> None:
    made = plan(shape_of(PAYMENTS), Deployment.of(PAYMENTS), 60)
    assert {change.where for change in made.changes} == {Where.OTHERS}
    assert made.in_the_way == ()


def test_what_it_writes_into_cdk_json_is_a_stage() -> None:
    made = plan(shape_of(PAYMENTS), Deployment.of(PAYMENTS), 400)
    settings = settings_of(made, shape_of(PAYMENTS), Deployment.of(PAYMENTS))
    stage = Stage.model_validate({"name": "x", **settings})
    assert stage.at(PAYMENTS).max_concurrency == made.deployment.max_concurrency == 32


def test_beyond_a_thousand_invocations_it_takes_provisioned_pollers() -> None:
    made = plan(shape_of(USERS), Deployment.of(USERS), 90_000)
    assert made.deployment.max_concurrency is None
    assert made.deployment.pollers is not None
    assert settings_of(made, shape_of(USERS), Deployment.of(USERS)) == {}


def test_one_gate_is_in_the_way_of_a_hundred_thousand_payments() -> None:
    made = plan(shape_of(PAYMENTS), Deployment.of(PAYMENTS), 100_000)
    assert made.in_the_way[0].name == "calls at one time"
    assert "hash slot of the dependency's gate" in {limit.name for limit in made.in_the_way}


@pytest.mark.parametrize("worker", counted_workers(), ids=lambda worker: worker.name)
@pytest.mark.parametrize("batch", [10, 1])
def test_costs_are_those_of_the_page_of_costs(worker, batch) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    ours = of_a_million_jobs(shape_of(worker), batch)
    assert ours == of_a_million(worker.name, kept()[worker.name], batch)


def test_the_front_door_costs_more_and_fuller_batches_cost_less() -> None:
    def dollars(origin: Origin, batch: float) -> float:
        return sum(of_a_million_jobs(shape_of(PAYMENTS, origin), batch).values())

    assert dollars(Origin.FRONT_DOOR, 10) > dollars(Origin.QUEUE, 10) + 1
    assert dollars(Origin.QUEUE, 10) < dollars(Origin.QUEUE, 2.5) < dollars(Origin.QUEUE, 1)


def test_curves_rise_with_the_rate() -> None:
    shape, declared = shape_of(USERS), Deployment.of(USERS)
    points = [point(shape, declared, rate) for rate in (1000, 2000, 10_000, 100_000)]
    for name in ("least", "most", "oldest", "changes"):
        values = [getattr(each, name) for each in points]
        assert values == sorted(values), name
    full, alone = (sum(of_a_million_jobs(shape, batch).values()) for batch in (10, 1))
    assert all(full <= each.dollars + 1e-9 and each.dollars < alone for each in points)


def test_the_command_tells_a_plan_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rate", "500", "--worker", "payments", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert 39 <= told["cdk.json"]["sizes"]["payments"]["max_concurrency"] < 50
    assert [change["where"] for change in told["changes"]][:1] == ["cdk.json"]
    assert sum(told["dollars a million"].values()) == pytest.approx(4.8, rel=0.1)


def test_the_command_tells_a_plan_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rate", "100000", "--worker", "payments", "--origin", "front-door"]) == 0
    told = capsys.readouterr().out
    assert "payments at 100,000 jobs a second" in told
    assert "in the way: calls at one time" in told
