"""The table of guards as a page: `python -m tests.mutants.page` writes docs/guards.md."""

from __future__ import annotations

from tests.mutants.run import ROOT
from tests.mutants.table import MUTANTS

PAGE = ROOT / "docs" / "guards.md"
HEAD = """# Guards

What keeps the promises, one statement each; where it stands; the tests that turn red when it is taken out. `make mutants` takes out
each of them in a copy of the project and fails if one is not missed. This page is written by `python -m tests.mutants.page`.

| guard | stands in | its absence is noticed by |
|---|---|---|
"""


def text() -> str:
    """The page."""
    rows = (
        f"| {mutant.guard} | `{mutant.file}` | {', '.join(f'`{test}`' for test in mutant.tests.split())} |\n"
        for mutant in MUTANTS
    )
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
