"""docs/capacity.md and what was kept are one: nobody edits the one without the other."""

from __future__ import annotations

import pytest

from benchmarks.capacity import curves, page, quotas, validation
from benchmarks.capacity.shape import Origin
from functions.registry import WORKERS


def test_the_page_follows_from_what_was_kept() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run make capacity"


def test_what_was_kept_is_what_the_model_says_today() -> None:
    known = {(each["worker"], each["origin"]): each for each in curves.kept()["curves"]}
    assert set(known) == {(worker.name, origin.value) for worker in curves.all_workers() for origin in Origin}
    worker = next(each for each in WORKERS if each.name == "payments")
    for origin in Origin:
        found = curves.curve(worker, origin, rates=(1000, 100_000))
        kept = known["payments", origin.value]
        points = {point["rate"]: point for point in kept["points"]}
        for point in found.points:
            assert points[point.rate]["bottleneck"] == point.bottleneck, "run make capacity"
            assert points[point.rate]["dollars"] == pytest.approx(point.dollars, rel=0.001), "run make capacity"
        assert [each["name"] for each in kept["ladder"]] == [limit.name for limit in found.ladder]


def test_the_kept_validation_is_within_its_bounds_and_says_what_it_is() -> None:
    known = validation.kept()
    assert known["label"] == validation.LABEL
    assert [load["load"] for load in known["loads"]] == [load[0] for load in validation.LOADS]
    for load in known["loads"]:
        assert load["throughput_error"] <= validation.THROUGHPUT_WITHIN
        assert load["p95_error"] <= validation.P95_WITHIN


def test_a_prediction_beyond_its_bounds_does_not_hold() -> None:
    right = validation.Compared("light", 1, 10, 1.0, 1.1, 2.0, 2.5, 1, 1)
    slow = validation.Compared("light", 1, 10, 1.0, 1.1, 2.0, 2.7, 1, 1)
    fast = validation.Compared("light", 1, 10, 1.0, 1.2, 2.0, 2.0, 1, 1)
    assert [each.holds for each in (right, slow, fast)] == [True, False, False]


def test_every_number_of_aws_has_a_page_or_says_that_it_is_assumed() -> None:
    for name, quota in quotas.all_quotas().items():
        assert quota.is_assumed != quota.source.startswith("https://docs.aws.amazon.com/"), name
