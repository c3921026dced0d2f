"""Compiled files in an asset: each must be built for the processor, system and Python that will load it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shared.errors import DeclarationError

if TYPE_CHECKING:
    from pathlib import Path

ELF = b"\x7fELF"
# e_machine of the ELF header (System V ABI), at byte 18, little endian on both processors of Lambda.
MACHINES = {"x86_64": 0x3E, "arm64": 0xB7}
COMPILED = re.compile(r"\.(so|pyd|dylib|dll)(\.\d+)*$")
PYTHON_TAG = re.compile(r"\.cpython-(\d)(\d+)t?-")


def compiled_files(asset: Path) -> list[Path]:
    """Every compiled file of an asset."""
    return sorted(path for path in asset.rglob("*") if path.is_file() and COMPILED.search(path.name))


def check_binaries(asset: Path, *, architecture: str, python: str, linux: bool = True) -> None:
    """Refuse an asset that the function could not load.

    `linux=False` leaves the format alone, for functions that run on a host of another system.

    Raises:
        DeclarationError: naming the file and what it was built for.
    """
    for path in compiled_files(asset):
        built_for = _problem(path, architecture, python, linux=linux)
        if built_for:
            message = (
                f"{path.relative_to(asset)} is built for {built_for}, the function runs on {architecture} with Python"
                f" {python}: remove build/ and package again, by infra/packaging/asset.py alone."
            )
            raise DeclarationError(message)


def _problem(path: Path, architecture: str, python: str, *, linux: bool) -> str | None:
    tag = PYTHON_TAG.search(path.name)
    if tag and f"{tag[1]}.{tag[2]}" != python:
        return f"Python {tag[1]}.{tag[2]}"
    with path.open("rb") as file:
        header = file.read(20)
    if header[:4] != ELF:
        return "another system than Linux" if linux else None
    machine = int.from_bytes(header[18:20], "little")
    if machine != MACHINES[architecture]:
        return next((name for name, number in MACHINES.items() if number == machine), f"machine {machine:#x}")
    return None
