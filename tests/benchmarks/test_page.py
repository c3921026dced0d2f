"""docs/performance.md follows from the results that are kept, losses included."""

from __future__ import annotations

import json

from benchmarks.__main__ import KEPT
from benchmarks.declared import Figure, Measure, Target
from benchmarks.judged import Found, is_lost
from benchmarks.measures import MEASURES
from benchmarks.page import PAGE, PLOT, page
from benchmarks.shown import number, ratio, read_results, table

KEPT_RESULTS = json.loads(KEPT.read_text(encoding="utf-8"))


def test_the_page_follows_from_the_kept_results() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(KEPT_RESULTS), "run python -m benchmarks.page"
    assert PLOT.read_bytes().startswith(b"\x89PNG")


def test_every_figure_is_kept_of_a_whole_run() -> None:
    kept = {measure: set(figures) for measure, figures in KEPT_RESULTS["results"].items()}
    assert kept == {measure.name: {figure.name for figure in measure.figures} for measure in MEASURES}
    assert not KEPT_RESULTS["quick"]


def test_every_loss_is_explained() -> None:
    results = read_results(KEPT_RESULTS)
    lost = [
        figure
        for measure in MEASURES
        for figure in measure.figures
        if is_lost(figure, results[measure.name][figure.name])
    ]
    assert [figure.name for figure in lost if not figure.remark] == []


def test_numbers_have_three_digits_and_a_ratio_its_interval() -> None:
    assert [number(value) for value in (None, 0.12345, 12.345, 1234.5)] == ["-", "0.123", "12.3", "1,234"]
    assert ratio(Found(1, 2, 0.5, 0.41, 0.62, rounds=9)) == "0.5 (0.41 - 0.62)"
    assert ratio(Found(2, 3, 0.667)) == "0.667"
    assert ratio(Found(4)) == "-"


def test_the_table_says_which_targets_are_missed() -> None:
    figures = (
        Figure("good", "w", "u", "p", Target(at_most=1)),
        Figure("bad", "w", "u", "p", Target(at_most=1)),
        Figure("gone", "w", "u", "p"),
    )
    measure = Measure("m", "t", "e", figures, run=lambda _: {})
    shown = table([measure], {"m": {"good": Found(1, 2, 0.5), "bad": Found(2, 1, 2.0)}})
    assert list(shown.columns[0].cells) == ["m/good", "m/bad"]
    assert list(shown.columns[6].cells) == ["[green]met[/]", "[red]MISSED[/]"]
