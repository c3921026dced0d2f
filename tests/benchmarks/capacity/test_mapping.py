"""The mapping's scale-up, by Lambda's documented numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.capacity.deployment import STREAM_BATCH, Deployment, Pollers
from benchmarks.capacity.mapping import scaling_of
from infra.constructs import mapping
from tests.benchmarks.capacity.cases import FAR, wide


def test_it_begins_with_five_and_adds_three_hundred_a_minute() -> None:
    scaling = scaling_of(wide())
    assert [scaling.after(seconds) for seconds in (0, 1, 60, 120)] == [5, 10, 305, 605]


def test_the_maximum_concurrency_ends_it() -> None:
    scaling = scaling_of(wide(max_concurrency=20))
    assert scaling.after(3600) == 20
    assert scaling.until(20) == pytest.approx(3)
    assert scaling.until(21) == float("inf")


def test_without_a_maximum_it_ends_at_1250() -> None:
    assert scaling_of(wide(max_concurrency=None)).after(3600) == 1250


def test_a_maximum_of_two_begins_with_two() -> None:
    assert scaling_of(wide(max_concurrency=2)).after(0) == 2


def test_provisioned_pollers_begin_with_ten_invocations_each_and_add_a_thousand_a_minute() -> None:
    scaling = scaling_of(replace(wide(max_concurrency=None), pollers=Pollers(least=3, most=2000)))
    assert scaling.after(0) == 30
    assert scaling.after(60) == 1030
    assert scaling.after(3600) == 20_000


def test_the_account_and_a_reservation_end_it_too() -> None:
    assert scaling_of(Deployment(max_concurrency=None)).after(3600) == 1000
    assert scaling_of(wide(account=FAR, reserved=7)).after(3600) == 7


def test_the_relay_has_the_batches_that_infra_deploys() -> None:
    assert STREAM_BATCH == mapping.STREAM_BATCH
