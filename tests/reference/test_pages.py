"""The pages that are written from the code say what the code says, and leave nothing out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.stage.settings import ROOT
from reference import architecture, errors
from reference.architecture import missing
from reference.errors import IN_A_HANDLER, all_errors, reasons
from reference.explained import explained
from reference.pages import PAGES
from shared.worker import Worker

if TYPE_CHECKING:
    from pathlib import Path

# Given to clients and operators, in whose answers they stand; no message dies of them.
NO_DEATH = "docs/reference/http.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_written_by_its_generator(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page](), "run python -m reference"


def test_no_package_is_missing_on_the_page_of_architecture() -> None:
    assert missing() == []


def test_an_environment_within_a_package_is_no_part_of_it() -> None:
    assert architecture._is_ours(ROOT / "local" / "standin" / "__init__.py")
    assert not architecture._is_ours(ROOT / "local" / "standin" / ".venv" / "lib" / "__init__.py")


def test_every_error_stands_on_the_page() -> None:
    text = errors.page()
    assert [
        name for name in all_errors() if name not in {"TahanError", "HandlerEnded"} and f"| `{name}` |" not in text
    ] == []
    assert set(IN_A_HANDLER) <= set(all_errors())


def test_every_reason_that_the_code_gives_is_explained_to_those_who_meet_it() -> None:
    pages = "".join(
        (ROOT / page).read_text(encoding="utf-8")
        for page in ("docs/reference/messages.md", NO_DEATH, "events/README.md")
    )
    assert [reason for reason in reasons() if f"`{reason}`" not in pages] == []


def test_a_sentence_of_several_lines_is_one() -> None:
    assert explained(Worker)["name"] == "part of the names of all resources."
    assert "\n" not in "".join(explained(Worker).values())
