"""The short form of `make soak`: one round under every kind of fault, and books that would show a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from local.outside.payment_provider import Provider
from local.processes.children import Children
from local.stack.valkey import Valkey
from shared.job_record import JobView, Status
from tests.faults import burst
from tests.serving import serving
from tests.soak.round import Round

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 12.0


@pytest.fixture
def played(aws_endpoint: str, tmp_path: Path) -> Iterator[Round]:
    """A round that has not begun."""
    with Children() as children, serving(Provider(0, quiet=True)) as provider:
        valkey = Valkey(children, tmp_path / "valkey")
        valkey.start()
        yield Round(1, valkey, provider, burst.start(children, aws_endpoint, tmp_path), SECONDS)


@pytest.mark.timeout(400)
def test_i26_after_a_round_of_chaos_every_message_is_accounted_for_and_nothing_happened_twice(played: Round) -> None:
    books = played.run()
    assert books.wrong == []
    assert books.sent == books.completed + books.duplicates + books.dead_lettered
    assert books.sent > 20
    assert min(books.completed, books.duplicates) > 0
    assert books.fired["killed"] + books.fired["frozen"] > 0
    assert len([name for name, times in books.fired.items() if times]) >= 4


def test_the_books_show_a_message_that_is_nowhere_and_an_effect_that_is_missing(played: Round) -> None:
    while not played.load.captures:
        played.books.sent += len(played.load.draw())
    (order,) = played.load.captures
    played.stack.seed(order_id=order.key, payment_intent_id=order.intent)
    played._make_the_books()
    assert any("nowhere" in wrong for wrong in played.books.wrong)
    played.books.wrong.clear()
    played._inspect(order, JobView("r", Status.COMPLETED, 1, "1:x"))
    assert [wrong.split(":")[0] for wrong in played.books.wrong] == ["G4, G5"]


def test_the_books_show_a_barrel_that_was_poured_into_twice(played: Round) -> None:
    played._make_the_books()
    assert played.books.wrong == []
    played._poured = lambda: {"barrel-0": 3}  # type: ignore[assignment,method-assign,return-value]
    played._make_the_books()
    assert [wrong.split(":")[0] for wrong in played.books.wrong] == ["I14"]
