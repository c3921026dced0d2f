"""`python -m reference` writes docs/reference/settings.md, docs/reference/errors.md and docs/architecture.md from the code."""

from __future__ import annotations

from reference.pages import PAGES

if __name__ == "__main__":
    for path, page in PAGES.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(page(), encoding="utf-8")
