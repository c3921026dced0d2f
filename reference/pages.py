"""The pages that follow from the code, each with what makes its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.stage.settings import ROOT
from reference import architecture, errors, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

DOCS = ROOT / "docs"
PAGES: Mapping[Path, Callable[[], str]] = {
    DOCS / "reference" / "settings.md": settings.page,
    DOCS / "reference" / "errors.md": errors.page,
    DOCS / "architecture.md": architecture.page,
}
