"""`docs/reference/settings.md`: every setting of a stage and every option of a declaration, with its default and its sentence."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticUndefined

from infra.stage.alarm_settings import AlarmSettings
from infra.stage.brought import ExistingNetwork
from infra.stage.identity import Identity
from infra.stage.settings import Stage
from infra.stage.sizes import Size
from reference.explained import UnexplainedError, explained, in_cell
from shared.dependency import Dependency
from shared.gate import CircuitBreaker, RetryBudget
from shared.job import job
from shared.rate import Rate
from shared.retry import Retry
from shared.settings import Settings
from shared.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

HEAD = """# Settings and options

Every setting of a stage (`stages` in `cdk.json`) and every option of a declaration, as the code has them. What contradicts itself is refused, a setting at
synth and an option at import, with the repair. Times in `cdk.json` are seconds or ISO 8601 (`"PT5M"`); in a declaration they are `timedelta`.
This page is written by `python -m reference`.
"""
NEEDED = "*needed*"
# What is said beside the class, where its docstring has one sentence for all of it.
OF_RETRY = {
    "max_attempts": "attempts of a job, of whatever delivery; postponements are none",
    "base": "the longest first wait; each is drawn by chance below it, and it doubles with each attempt",
    "cap": "what it grows to; SQS hides a message for 12 hours at the most",
    "unknown_attempts": "attempts where the error is a bug, or something nobody thought of",
}
OF_RATE = {
    "per_second": "in the long run; over all workers",
    "burst": "at once after a rest",
}
OF_NAME = {"name": "lower case words joined by '-'; part of the names of what is deployed"}


def page() -> str:
    """The page."""
    models: dict[str, tuple[type[BaseModel], str]] = {
        "A stage": (Stage, "An entry of `stages`; its key is the stage's name."),
        "A size": (Size, '`sizes` of a stage: by worker, or `"front-door"`.'),
        "The identity of clients": (Identity, "`identity` of a stage. Without it there is no front door."),
        "A network of your own": (
            ExistingNetwork,
            "`network` of a stage ([bring your own](../how-to/bring-your-own.md)).",
        ),
        "Thresholds of alarms": (AlarmSettings, "`alarms` of a stage ([alarms](alarms.md)). Shares are percent."),
    }
    declared: dict[str, tuple[Mapping[str, Any], Mapping[str, str], str]] = {
        "A job": (_parameters(job), explained(job), "`@job(name, ...)` above its handler ([jobs](../how-to/jobs.md))."),
        "Retries": (
            _fields(Retry),
            OF_RETRY,
            "`Retry(...)`, an option of a job. An option that is left out has these.",
        ),
        "A worker": (_fields(Worker), explained(Worker), "`Worker(name, jobs=..., ...)` at the end of its module."),
        "A dependency": (
            _fields(Dependency),
            {**OF_NAME, **explained(Dependency)},
            "`Dependency(name, ...)` beside the functions that call it ([dependencies](../explanation/dependencies.md)).",
        ),
        "A rate": (_fields(Rate), OF_RATE, "`Rate(...)` of a dependency."),
        "A retry budget": (_fields(RetryBudget), explained(RetryBudget), "`RetryBudget(...)` of a dependency."),
        "A breaker": (_fields(CircuitBreaker), explained(CircuitBreaker), "`CircuitBreaker(...)` of a dependency."),
        "What a function is told": (
            _fields(Settings),
            explained(Settings),
            "Its environment (`TAHAN_...`), which infra writes: nobody sets it by hand. No secret stands in it.",
        ),
    }
    parts = [HEAD]
    for title, (model, about) in models.items():
        parts.append(_table(title, about, _of_model(model)))
    for title, (options, sentences, about) in declared.items():
        parts.append(_table(title, about, _of_options(title, options, sentences)))
    return "\n".join(parts)


def _table(title: str, about: str, rows: Iterator[tuple[str, str, str]]) -> str:
    lines = "\n".join(f"| `{name}` | {default} | {in_cell(sentence)} |" for name, default, sentence in rows)
    return f"## {title}\n\n{about}\n\n| name | by default | what it is |\n|---|---|---|\n{lines}\n"


def _of_model(model: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    sentences = explained(model)
    for name, field in model.model_fields.items():
        bounds = _bounds(field)
        sentence = _sentence(model.__name__, name, sentences)
        yield name, _of_field(field), f"{sentence} {bounds}" if bounds else sentence


def _of_options(title: str, options: Mapping[str, Any], sentences: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, default in options.items():
        yield name, NEEDED if default is MISSING else _shown(default), _sentence(title, name, sentences)


def _sentence(owner: str, name: str, sentences: Mapping[str, str]) -> str:
    if name not in sentences:
        message = f"{owner}.{name}"
        raise UnexplainedError(message)
    return sentences[name]


def _parameters(function: Any) -> dict[str, Any]:  # noqa: ANN401 - any callable
    found = inspect.signature(function).parameters
    return {name: MISSING if each.default is inspect.Parameter.empty else each.default for name, each in found.items()}


def _fields(owner: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    return {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(owner)
        if each.name != "pace"  # which nobody gives: it follows from the stage
    }


def _of_field(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True, validated_data={})
    return NEEDED if default is PydanticUndefined else _shown(default)


def _bounds(field: FieldInfo) -> str:
    signs = {"ge": "from", "gt": "over", "le": "to", "lt": "below"}
    found = [
        f"{sign} {_shown(getattr(each, name))}"
        for name, sign in signs.items()
        for each in field.metadata
        if hasattr(each, name)
    ]
    return f"({' '.join(found)})" if found else ""


def _shown(value: object) -> str:
    match value:
        case None | () | "" | {}:
            return "-"
        case bool():
            return f"`{str(value).lower()}`"
        case Enum():
            return f"`{value.value}`"
        case timedelta():
            return _time(value)
        case int() | float():
            return f"{value:,}"
        case str():
            return f"`{value}`"
        case _:
            return f"`{type(value).__name__}()`, see below"


def _time(value: timedelta) -> str:
    seconds = value.total_seconds()
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"
