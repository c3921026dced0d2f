"""docs/performance.md and its plot, out of the results that are kept: `python -m benchmarks.page`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.__main__ import KEPT
from benchmarks.judged import bounded, is_lost
from benchmarks.measures import MEASURES
from benchmarks.running import ROOT
from benchmarks.shown import number, plot, ratio, read_results, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.declared import Figure, Measure
    from benchmarks.judged import Found

PAGE, PLOT = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance.png"


def page(kept: Mapping[str, Any]) -> str:
    """The page."""
    results = read_results(kept)
    machine = kept["machine"]
    where = f"{machine['system']} on {machine['processor']} with {machine['cores']} cores"
    versions = ", ".join(f"{name} {version}" for name, version in sorted(kept["versions"].items()))
    lines = [
        "# Performance",
        "",
        "Ours beside what a user would pick or wire instead: the same work, the same machine, the same run. `make bench` measures all of it,",
        "`make bench-quick` looks, and `python -m benchmarks.page` writes this page from [benchmarks/kept.json](../benchmarks/kept.json), which",
        "`make bench ARGS=--keep` keeps. Only ratios are claims: times are of one machine and one day, and stand here to show their size.",
        "",
        "Sides take turns within a process wherever they can, with one interpreter and one set of libraries, in rounds whose order is shuffled by a seed.",
        "A ratio is the median over the rounds of ours / peer of the same round, with the interval of that median by resampling the rounds (95 %).",
        "`make bench` fails when a target is missed, or when a ratio has fallen behind the kept one by more than its tolerance.",
        "",
        f"This run: {kept['date']}, commit {kept['commit']}, {where}, Python {kept['python']}, seed {kept['seed']}.",
        f"{versions}.",
        "",
        "![Ratios with their intervals and targets](performance.png)",
        "",
        "## Where we lose",
        "",
        *_losses(results),
    ]
    for measure in MEASURES:
        if measure.name in results:
            lines += ["", *_section(measure, results[measure.name])]
    return "\n".join(lines) + "\n"


def _losses(results: Mapping[str, Mapping[str, Found]]) -> Iterator[str]:
    """A line for each figure whose target is missed or whose peer is better, those for one reason together."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for measure in MEASURES:
        for figure, found in _found(measure, results.get(measure.name, {})):
            if is_lost(figure, found):
                asked = "" if figure.target is None else f" ({figure.target.text} is asked)"
                said = f"{figure.name} {number(found.value(bounded(figure)))}{asked}"
                by_reason.setdefault((measure.name, figure.remark), []).append(said)
    if not by_reason:
        yield "Nowhere in this run."
    for (name, reason), figures in by_reason.items():
        yield f"- `{name}`: {', '.join(figures)}. {reason}"


def _section(measure: Measure, results: Mapping[str, Found]) -> Iterator[str]:
    yield f"## {measure.title}"
    yield ""
    yield f"`{measure.name}`. {measure.explanation}"
    yield ""
    yield "| | ours | peer | unit | ours / peer | target | | beside |"
    yield "|---|---|---|---|---|---|---|---|"
    for figure, found in _found(measure, results):
        target = "" if figure.target is None else figure.target.text
        cells = (
            figure.what,
            number(found.ours),
            number(found.peer),
            figure.unit,
            ratio(found),
            target,
            verdict(figure, found),
            figure.peer,
        )
        yield f"| {' | '.join(cells)} |"


def _found(measure: Measure, results: Mapping[str, Found]) -> Iterator[tuple[Figure, Found]]:
    return ((figure, results[figure.name]) for figure in measure.figures if figure.name in results)


def main() -> int:
    """Write the page and draw its plot."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    PAGE.write_text(page(kept), encoding="utf-8")
    plot(MEASURES, read_results(kept), PLOT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
