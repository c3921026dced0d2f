"""How large the zip of a function is: counted on the assets that are deployed."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.declared import Figure, Measure, Of, Sample, Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.bench import Bench

MEGABYTE = 1e6
MOST = 4.2  # megabytes
ENTRIES = ("payments", "front_door", "imports", "outbox_relay")
NEVER = frozenset({"infra", "ops", "local", "tests", "audit", "watch", "benchmarks"})


def run(bench: Bench) -> Mapping[str, Sample]:
    """Build the assets for Lambda and zip them as the CDK does."""
    from infra.packaging.asset import asset  # noqa: PLC0415 - in the project's own environment alone
    from infra.packaging.target import Target as Built  # noqa: PLC0415 - as above

    found = {}
    for place, name in enumerate(ENTRIES):
        built = asset(f"functions.{name}", Built("arm64", "3.13"))
        if strange := NEVER & {path.name for path in built.iterdir()}:
            message = f"the asset of {name} holds {sorted(strange)}"
            raise AssertionError(message)
        found[name] = Sample((zipped(built) / MEGABYTE,))
        bench.progress((place + 1) / len(ENTRIES))
    return found


def zipped(folder: Path) -> int:
    """Bytes of the folder as a zip."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "asset.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for file in sorted(folder.rglob("*")):
                archive.write(file, file.relative_to(folder))
        return path.stat().st_size


MEASURE = Measure(
    name="zip_size",
    title="The zip of a function",
    explanation=(
        "The asset that is deployed, for arm64 and Python 3.13, as a zip: the function's own modules, `shared`, and the"
        " dependencies without boto3, which is the runtime's own there (docs/decisions.md). Nothing of infra, ops, local"
        " or another worker is in it."
    ),
    figures=tuple(
        Figure(name, f"functions.{name}", "MB", target=Target(Of.OURS, at_most=MOST), tolerance=0.03)
        for name in ENTRIES
    ),
    run=run,
    own_environment=True,
)
