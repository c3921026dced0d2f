"""The short form of `make mutants`: the table fits the code, and a few mutants die."""

from __future__ import annotations

import pytest

from tests.mutants.page import PAGE, text
from tests.mutants.run import ROOT, killer, mutated
from tests.mutants.table import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.guard)
def test_each_guard_stands_once_where_the_table_says_and_its_mutant_can_be_read(mutant: Mutant) -> None:
    without = mutated(mutant)
    if mutant.file.endswith(".py"):
        compile(without, mutant.file, "exec")
    assert all((ROOT / name).exists() for name in mutant.tests.split())


@pytest.mark.parametrize(
    "guard", ["tags are dropped after the commit", "a refill needs its token", "a blank key is refused"]
)
def test_a_mutant_is_killed_by_its_tests(guard: str) -> None:
    (mutant,) = [mutant for mutant in MUTANTS if mutant.guard == guard]
    assert (killer(mutant) or "").startswith("tests/")


def test_the_product_as_it_is_survives() -> None:
    whole = Mutant("nothing", "shared/retry.py", "class Retry:", "class Retry:", "tests/unit/test_retry.py")
    assert killer(whole) is None


def test_the_page_of_guards_is_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(), "write it anew: python -m tests.mutants.page"


def test_each_guard_is_named_once() -> None:
    assert len({mutant.guard for mutant in MUTANTS}) == len(MUTANTS)
