"""What workers need together, refused without a synth."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from functions import front_door, registry
from functions.http import resources
from infra.names import module_of, queue_names
from infra.plan import Plan
from infra.stage.brought import ExistingNetwork
from infra.stage.settings import Stage
from shared.dependency import Dependency
from shared.errors import DeclarationError
from shared.naming import camel
from shared.rate import Rate
from shared.table import Table
from shared.worker import Worker
from tests.infra.declared import ORDERED, PAYING, READING, SLOW, STAGE, WORKERS, a_job

WITHOUT_EGRESS = Stage(name="dev", nat_gateways=0)


def test_names_follow_from_the_declaration() -> None:
    assert camel("payment-provider") == "PaymentProvider"
    assert module_of(ORDERED) == "functions.in_order"


def test_tables_of_several_workers_are_taken_once() -> None:
    assert [table.name for table in Plan(STAGE, WORKERS).tables] == ["orders", "order-lines"]


def test_an_outside_dependency_without_a_way_out_is_refused_with_the_arithmetic() -> None:
    with pytest.raises(DeclarationError) as refused:
        Plan(WITHOUT_EGRESS, WORKERS)
    message = str(refused.value)
    assert "1 of 4 workers call outside systems ('paying' calls payment-provider), and nat_gateways=0" in message
    assert "set nat_gateways to 1 or more" in message


def test_a_dependency_that_two_workers_declare_otherwise_is_refused() -> None:
    slower = Dependency("payment-provider", timeout=timedelta(seconds=20))
    other = Worker("other", (a_job("other", slower),))
    with pytest.raises(DeclarationError, match="by workers 'paying' and 'other'"):
        Plan(STAGE, (PAYING, other))


def test_a_dependency_that_two_jobs_of_a_worker_declare_otherwise_is_refused() -> None:
    ways = [Dependency("payment-provider", timeout=timedelta(seconds=seconds)) for seconds in (10, 20)]
    with pytest.raises(DeclarationError, match="declared in two ways"):
        Worker("other", tuple(a_job(f"job-{place}", way) for place, way in enumerate(ways)))


def test_a_network_that_is_there_without_egress_takes_no_worker_that_calls_out() -> None:
    zones, isolated = ("eu-central-1a", "eu-central-1b"), ("subnet-00000001", "subnet-00000002")
    network = ExistingNetwork(vpc="vpc-0123abcd", zones=zones, isolated=isolated)
    stage = Stage(name="dev", network=network)
    with pytest.raises(
        DeclarationError, match=r"'paying' call outside systems, and network 'vpc-0123abcd' has no egress"
    ):
        Plan(stage, WORKERS)
    assert Plan(stage, (READING,)).outgoing == ()


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ({"reading": {"provisioned_concurrency": 3}}, r"sizes has \['reading'\].*choose of \['front-door', 'paying'\]"),
        ({"paying": {"provisioned_concurrency": 21}}, "=21 is over reserved_concurrency=20"),
        ({"paying": {"provisioned_concurrency": 11}}, "=11 of worker 'paying' is over its max_concurrency=10"),
        ({"paying": {"max_concurrency": 21}}, "max_concurrency=21 is over reserved_concurrency=20"),
        ({"paying": {"max_concurrency": 21, "reserved_concurrency": 30}}, ""),
    ],
)
def test_a_size_is_of_a_worker_that_there_is_and_fits_it(size: dict[str, dict[str, int]], words: str) -> None:
    stage = Stage.model_validate({"name": "dev", "sizes": size})
    if words:
        with pytest.raises(DeclarationError, match=words):
            Plan(stage, (PAYING,))
    else:
        assert stage.at(Plan(stage, (PAYING,)).workers[0]).max_concurrency == 21


def test_without_an_outside_dependency_no_way_out_is_needed() -> None:
    assert Plan(WITHOUT_EGRESS, (READING, ORDERED)).outgoing == ()


def test_a_worker_that_is_added_is_checked_with_the_others() -> None:
    plan = Plan(STAGE, (PAYING,))
    with pytest.raises(DeclarationError, match="two workers are called 'paying' and 'paying'"):
        plan.with_worker(PAYING)


@pytest.mark.parametrize(
    ("twins", "words"),
    [
        ((Worker("a-1", (a_job("one"),)), Worker("a1", (a_job("two"),))), "two workers are called 'a-1' and 'a1'"),
        (
            (Worker("a", (a_job("one"),)), Worker("b", (a_job("one"),))),
            "two job types are called 'one' of worker 'a' and 'one' of worker 'b'",
        ),
        (
            (
                Worker("a", (a_job("one", Table("orders", "id").read),)),
                Worker("b", (a_job("two", Table("orders", "order").read, timeout=timedelta(seconds=1)),)),
            ),
            "two tables are called 'orders' and 'orders'",
        ),
        (
            (
                Worker("a", (a_job("one", Dependency("web-shop", rate=Rate(10))),)),
                Worker("b", (a_job("two", Dependency("web-shop")),)),
            ),
            "dependency 'web-shop' is declared in two ways, by workers 'a' and 'b'",
        ),
        (
            (
                Worker("a", (a_job("one", Dependency("shop-1")),)),
                Worker("b", (a_job("two", Dependency("shop1")),)),
            ),
            "two dependencies are called 'shop-1' and 'shop1'",
        ),
    ],
)
def test_two_things_of_one_name_are_refused(twins: tuple[Worker, ...], words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        Plan(STAGE, twins)


@pytest.mark.parametrize("fifo", [False, True])
def test_a_queue_name_that_sqs_would_not_take_is_refused_with_the_sum(fifo: bool) -> None:
    room = 80 - len("tahan-dev-" + "-dead-letters") - (len(".fifo") if fifo else 0)
    fits = Worker("a" * room, (a_job("one"),), fifo=fifo)
    assert max(map(len, queue_names("tahan-dev", Plan(STAGE, (PAYING, fits)).workers[1]))) == 80
    with pytest.raises(DeclarationError) as refused:
        Plan(STAGE, (PAYING, Worker("a" * (room + 2), (a_job("one"),), fifo=fifo)))
    assert f"10 + {room + 2} + {18 if fifo else 13} = 82 characters, SQS takes 80" in str(refused.value)
    assert "shorten the worker's name or the stage's by 2" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("registry", "functions.registry is a module of the product"),
        ("outbox-relay", "functions.outbox_relay is a module of the product"),
        ("paying-dead-letters", "called like a dead-letter queue"),
    ],
)
def test_a_worker_whose_name_is_taken_is_refused(name: str, words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        Plan(STAGE, (PAYING, Worker(name, (a_job("one"),))))


def test_a_stage_that_asks_for_more_than_a_worker_has_reserved_is_blamed_itself() -> None:
    with pytest.raises(DeclarationError) as refused:
        Plan(Stage(name="wide", max_concurrency=21), (PAYING,))
    message = str(refused.value)
    assert message.startswith("stage 'wide': max_concurrency=21 is over reserved_concurrency=20 of worker 'paying'")
    assert "set at most 20 in cdk.json" in message


def test_a_worker_that_cannot_run_at_the_pace_of_the_stage_is_refused_before_a_synth() -> None:
    with pytest.raises(DeclarationError, match=r"^stage 'lazy' with pace=2: worker 'slow': .* Lambda allows"):
        Plan(Stage(name="lazy", pace=2), (SLOW,))


def test_an_endpoint_that_no_worker_calls_is_refused_with_those_they_do() -> None:
    with pytest.raises(DeclarationError, match=r"endpoints has \['bank'\].* in use are \['payment-provider'\]"):
        Plan(Stage(name="dev", endpoints={"bank": "https://bank.example"}), WORKERS)


def opened(name: str) -> Worker:
    return Worker("opened", jobs=(replace(a_job(name), open_to_clients=True),))


def test_an_open_job_that_the_front_door_does_not_know_is_refused_with_the_line_to_add(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(DeclarationError, match=r"'made-up' is open .* WORKERS in functions/front_door\.py"):
        Plan(WITHOUT_EGRESS, (opened("made-up"),))
    monkeypatch.setattr(front_door, "OPEN", {"made-up": "opened"})
    with pytest.raises(DeclarationError, match=r"whose .* RESOURCES in functions/http/resources\.py"):
        Plan(WITHOUT_EGRESS, (opened("made-up"),))
    monkeypatch.setattr(resources, "ABOUT_NOBODY", frozenset({"made-up"}))
    assert Plan(WITHOUT_EGRESS, (opened("made-up"),)).workers


def test_every_open_job_of_the_product_is_known_to_the_front_door_and_somebodys() -> None:
    assert Plan(STAGE, registry.WORKERS).workers == registry.WORKERS
