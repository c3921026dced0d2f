"""What workers need together, refused without a synth."""

from __future__ import annotations

from datetime import timedelta

import pytest

from infra.plan import Plan, camel, module_of
from infra.settings import Stage
from shared.errors import DeclarationError
from shared.table import Table
from shared.worker import Worker
from tests.infra.declared import ORDERED, PAYING, READING, STAGE, WORKERS, a_job

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
        ((Worker("a", (a_job("one"),)), Worker("b", (a_job("one"),))), "two job types are called 'one' and 'one'"),
        (
            (
                Worker("a", (a_job("one", Table("orders", "id").read),)),
                Worker("b", (a_job("two", Table("orders", "order").read, timeout=timedelta(seconds=1)),)),
            ),
            "two tables are called 'orders' and 'orders'",
        ),
    ],
)
def test_two_things_of_one_name_are_refused(twins: tuple[Worker, ...], words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        Plan(STAGE, twins)
