"""Updates of job records under conditions: their expressions, and what it means that a record is not as an attempt wants it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from shared.errors import ClaimLost
from shared.job_record import Status

if TYPE_CHECKING:
    from shared.job_record import Hold

NAMES = {
    "#status": "status",
    "#owner": "owner",
    "#token": "attempt_token",
    "#until": "in_progress_expiration",
    "#expires": "expiration",
    "#ttl": "ttl",
    "#data": "data",
    "#attempts": "attempts",
    "#death": "death",
    "#fingerprint": "fingerprint",
    "#not_before": "not_before",
    "#trace": "trace",
    "#split": "split",
}
HELD = "#token = :token AND #status = :running"  # with `held_values`


def held_values(hold: Hold) -> dict[str, Any]:
    """The values of the condition that an attempt still holds its job."""
    return {":token": {"S": hold.token}, ":running": {"S": Status.RUNNING.value}}


def demand_held(hold: Hold, in_the_way: dict[str, Any] | None, done: Status | None) -> None:
    """Return if a write was done that an attempt makes of its job: now, or to `done` by an earlier try whose reply was lost.

    Args:
        hold: the attempt's.
        in_the_way: as a conditional write gives it.
        done: the state that the write gives the record; None if it gives none, and repeating it is harmless.

    Raises:
        ClaimLost: another attempt holds the job, or it has ended.
    """
    if in_the_way is None:
        return
    is_ours = in_the_way.get("attempt_token", {}).get("S") == hold.token
    if not is_ours or done is None or in_the_way["status"]["S"] != done.value:
        message = "Another attempt holds the job, or it has ended."
        raise ClaimLost(message)


def conditional(update: str, condition: str, known: dict[str, Any]) -> dict[str, Any]:
    """The expressions of an update of a record as it must be, with the values they use; a refusal brings what is there."""
    names, values = _placeholders(update, condition, tuple(known))
    return {
        "UpdateExpression": update,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": dict(names),
        "ExpressionAttributeValues": {name: known[name] for name in values},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


@lru_cache(maxsize=256)  # as many as there are kinds of updates, but for those that name a job's own dependencies
def _placeholders(update: str, condition: str, known: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Of the names of attributes and of the values that are known: those that the expressions use."""
    used = f"{update} {condition}"
    return names_in(used), tuple(name for name in known if uses(used, name))


def names_in(expression: str) -> dict[str, str]:
    """The names of the attributes that an expression uses."""
    return {name: value for name, value in NAMES.items() if uses(expression, name)}


def uses(expression: str, name: str) -> bool:
    """Whether an expression holds the placeholder as a whole word."""
    place = expression.find(name)
    while place >= 0:
        end = place + len(name)
        if end == len(expression) or not (expression[end].isalnum() or expression[end] == "_"):
            return True
        place = expression.find(name, end)
    return False
