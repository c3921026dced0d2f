"""Payloads of earlier versions, brought to the current one: step by step, by what the job's author wrote, before the schema looks.

An upgrade is a pure function of the payload as JSON has it. Numbers keep their digits: those with a fraction are Decimal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from shared.errors import DeclarationError, Malformed, Refused
from shared.limits import check_value
from shared.strict_json import read_exactly, read_json, written

if TYPE_CHECKING:
    from shared.job import Job

Upgrade = Callable[[dict[str, Any]], Mapping[str, Any]]


def check_upgrades(name: str, version: int, upgrades: Mapping[int, Upgrade]) -> None:
    """Refuse upgrades that do not lead to the current version.

    Raises:
        DeclarationError: with the repair; `name` says whose they are.
    """
    later = sorted(number for number in upgrades if number >= version)
    if later:
        message = (
            f"{name}: upgrades has {later}, and the payload is at version {version}: an upgrade leads to the version"
            f" after its own; raise version to {later[-1] + 1}, or take them out."
        )
        raise DeclarationError(message)
    oldest = min(upgrades, default=version)
    if oldest < 1:
        message = f"{name}: upgrades has {oldest}: versions begin at 1."
        raise DeclarationError(message)
    gaps = sorted(set(range(oldest, version)) - upgrades.keys())
    if gaps:
        message = (
            f"{name}: upgrades lead from version {oldest} to {version}, and {gaps} are missing: write one for each"
            " version in between, or leave the older ones out, whose messages are then dead-lettered."
        )
        raise DeclarationError(message)
    given: Mapping[int, object] = upgrades
    for number, upgrade in given.items():
        if not callable(upgrade):
            message = f"{name}: upgrades[{number}] is a {type(upgrade).__name__}: give a function of the payload."
            raise DeclarationError(message)


def upgraded(job: Job[Any, Any], version: int, payload: str) -> str:
    """The text of a payload in the current version, in canonical form; that of the current version as it is.

    Raises:
        Malformed: upgrade-failed: an upgrade raised, or gave what is no JSON object or has no exact form.
    """
    for number in range(version, job.version):
        payload = _one_up(job, number, payload)
    return payload


def _one_up(job: Job[Any, Any], number: int, payload: str) -> str:
    step = f"the upgrade of {job.name} from version {number}"
    try:
        given = job.upgrades[number](read_exactly(payload))
    except (Exception, SystemExit) as error:  # the job's own code; what it says may quote the payload
        raise Malformed("upgrade-failed", f"{step} failed: {type(error).__name__}") from error
    if not isinstance(given, Mapping):
        raise Malformed("upgrade-failed", f"{step} gave no object but {type(given).__name__}")
    try:
        check_value(given, "the payload")  # a float has lost its digits already
        _, text = read_json(written(dict(given)))
    except (Malformed, Refused, TypeError, ValueError) as error:
        raise Malformed("upgrade-failed", f"{step} gave what has no exact form: {type(error).__name__}") from error
    return text
