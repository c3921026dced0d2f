"""What is refused of a job's declaration, with the repair."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from shared.declaring.upgrading import check_upgrades
from shared.errors import DeclarationError
from shared.payload import check_payload_schema
from shared.table import NAME

if TYPE_CHECKING:
    from shared.job import Job

LONGEST_NAME = 60
LONGEST_FUNCTION = timedelta(minutes=15)  # Lambda's longest timeout


def check_job(declared: Job[Any, Any]) -> None:
    """Return if the job can be run as it is declared.

    Raises:
        DeclarationError: with the repair.
    """
    name = f"job {declared.name!r}"
    if not NAME.fullmatch(declared.name) or len(declared.name) > LONGEST_NAME:
        message = (
            f"{name}: use lower case words joined by '-', like 'capture-payment', {LONGEST_NAME} characters at most."
        )
        raise DeclarationError(message)
    if declared.version < 1:
        message = f"{name}: version={declared.version} must be 1 or more."
        raise DeclarationError(message)
    check_upgrades(name, declared.version, declared.upgrades)
    _check_times(name, declared)
    for dependency in declared.dependencies:
        if dependency.timeout >= declared.timeout:
            message = (
                f"{name}: one call of {dependency.name!r} may take {dependency.timeout}, the whole job"
                f" {declared.timeout}: lower the first or raise the second."
            )
            raise DeclarationError(message)
    tables = [access.table.name for access in declared.accesses]
    if len(tables) != len(set(tables)):
        message = f"{name}: uses names a table twice ({tables}): keep the wider right."
        raise DeclarationError(message)
    check_payload_schema(name, declared.payload, seen=set())
    if declared.cron is not None:
        _check_recurring(name, declared, declared.cron)


def _check_recurring(name: str, declared: Job[Any, Any], cron: str) -> None:
    from shared.rounds.recurrence import check_cron  # noqa: PLC0415 - most jobs do not recur

    check_cron(name, cron)
    try:
        declared.payload.model_validate_json("{}")
    except ValidationError as error:
        message = f"{name}: nobody gives a recurring job its payload: give each field of it a default."
        raise DeclarationError(message) from error


def _check_times(name: str, declared: Job[Any, Any]) -> None:
    if not timedelta(0) < declared.timeout <= LONGEST_FUNCTION:
        message = (
            f"{name}: timeout={declared.timeout} must be more than 0 and at most {LONGEST_FUNCTION} (Lambda);"
            " split longer work."
        )
        raise DeclarationError(message)
    if declared.max_latency < declared.timeout:
        message = f"{name}: max_latency={declared.max_latency} is below timeout={declared.timeout}: raise it."
        raise DeclarationError(message)
    if declared.lease < timedelta(seconds=1):
        message = f"{name}: lease={declared.lease} leaves no time to renew it: give at least 1 second."
        raise DeclarationError(message)
    if not timedelta(0) <= declared.lock_wait < declared.timeout:
        message = f"{name}: lock_wait={declared.lock_wait} must be 0 or more, and below timeout={declared.timeout}."
        raise DeclarationError(message)
    if declared.heartbeat is not None and not timedelta(seconds=1) <= declared.heartbeat < declared.timeout:
        message = (
            f"{name}: heartbeat={declared.heartbeat} must be 1 second or more, and below timeout={declared.timeout}:"
            " a job that ends within one beat needs none."
        )
        raise DeclarationError(message)
