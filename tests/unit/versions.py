"""Payloads in versions, and the upgrades between them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from shared.job import job
from shared.payload import Payload
from tests.unit.times import TIMES

if TYPE_CHECKING:
    from shared.job import Job


class Third(Payload):
    """Version 3: its text is a list of lines."""

    name: str
    lines: tuple[str, ...]
    amount: Decimal = Decimal(0)


def renamed(payload: dict[str, Any]) -> dict[str, Any]:
    return {"name": payload["thing"], **{key: value for key, value in payload.items() if key != "thing"}}


def split(payload: dict[str, Any]) -> dict[str, Any]:
    text = payload.pop("text", "x")
    return {**payload, "lines": text.split()}


def third(**options: Any) -> Job[Any, Any]:
    def run(payload: Third, work: Any) -> object:
        return {"name": payload.name}

    return job("note", **{"version": 3, "upgrades": {1: renamed, 2: split}, **TIMES, **options})(run)
