"""`python -m functions.openapi` writes docs/reference/openapi.json; a test holds that file to the code."""

from __future__ import annotations

from functions.openapi.document import PAGE, text

if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
