"""Doing several things of which none may keep the others from being done."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def try_each(parts: Iterable[Callable[[], object]]) -> None:
    """Do each part, whatever became of those before it, and raise the first error in the end."""
    failed: list[Exception] = []
    for part in parts:
        try:
            part()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised when the others are done
            failed.append(error)
    if failed:
        raise failed[0]
