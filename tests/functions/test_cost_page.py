"""docs/cost.md: its counts are what the product asks today, its dollars follow from them and from the table of prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.cost import PAGE, of_a_million, page
from benchmarks.cost_counts import CASES, count, kept
from functions.registry import WORKERS
from tests.unplayed import UNPLAYED

if TYPE_CHECKING:
    from benchmarks.cost_counts import Case
    from local.stack.valkey import Valkey

EXACT = ("calls", "write_units", "read_units", "parts", "exchanges")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.worker.name)
def test_a_job_asks_for_what_the_page_says(case: Case, aws_endpoint: str, valkey: Valkey) -> None:
    counted, known = count(case, valkey), kept()[case.worker.name]
    assert {name: getattr(counted, name) for name in EXACT} == {name: known[name] for name in EXACT}
    assert counted.record_bytes == pytest.approx(known["record_bytes"], rel=0.1)


def test_every_worker_is_counted_but_the_one_whose_jobs_are_as_large_as_their_file() -> None:
    assert set(kept()) == {worker.name for worker in WORKERS} - {"imports"} - UNPLAYED


def test_the_page_follows_from_counts_and_prices() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m benchmarks.cost"


def test_the_arithmetic_is_this_one() -> None:
    counted = {
        "calls": {"SendMessage": 1, "UpdateItem": 1},
        "write_units": 5,
        "read_units": 2,
        "exchanges": 3,
        "log_bytes": 1000,
    }
    parts = of_a_million("users", counted, 10)
    assert parts["SQS"] == pytest.approx((1 + 0.2) * 0.40)
    assert parts["DynamoDB"] == pytest.approx(5 * 0.625 + 2 * 0.125)
    assert parts["Valkey"] == pytest.approx(3 * 0.0023)
    assert parts["logs"] == pytest.approx(0.5)
    assert parts["Lambda"] == pytest.approx(0.1 * 0.20 + 1_000_000 * 0.01 * 0.5 * 0.0000133334)
    assert parts["traces"] == pytest.approx(0.1 * 0.05 * 5)
