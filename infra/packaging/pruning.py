"""What is taken out of the installed dependencies: data and modules that nothing in a function ever loads.

Only what no module imports, not even inside a function, may stand here; a test reads all import statements for it.
"""

from __future__ import annotations

import shutil
from email.parser import Parser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# A pattern of files or directories, and why no function needs them.
PRUNED = {
    ".lock": "uv's own",
    "bin": "programs, started by no function",
    "**/__pycache__": "of the Python that installed them",
    "**/*.pyi": "read by type checkers",
    "**/py.typed": "read by type checkers",
    "annotated_types/test_cases.py": "its tests",
    "aws_lambda_powertools/event_handler/openapi/swagger_ui/*.css": "a web page, of enable_swagger() behind HTTP",
    "aws_lambda_powertools/event_handler/openapi/swagger_ui/*.js": "the same, a tenth of the zip",
    "pydantic/mypy.py": "a plugin of mypy",
    "urllib3/contrib/emscripten/*.js": "of Python in a browser",
}
# importlib.metadata reads these of a distribution, pydantic looks for plugins in the last; the rest is for installers.
METADATA = "METADATA"
KEPT = frozenset({METADATA, "entry_points.txt"})
HEADERS = ("Metadata-Version", "Name", "Version")


def prune(directory: Path) -> None:
    """Take it out of a directory of installed distributions."""
    for pattern in PRUNED:
        for path in list(directory.glob(pattern)):
            _remove(path)
    for distribution in directory.glob("*.dist-info"):
        for path in distribution.iterdir():
            if path.name not in KEPT:
                _remove(path)
        _shorten(distribution / METADATA)


def _shorten(metadata: Path) -> None:
    """Leave a distribution's name and version; the rest is its README."""
    read = Parser().parsestr(metadata.read_text(encoding="utf-8"), headersonly=True)
    metadata.write_text("".join(f"{name}: {read[name]}\n" for name in HEADERS), encoding="utf-8")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
