"""Payload fields that people must not see: declared where the payload is, and hidden wherever an operator looks.

    card: Annotated[str, Masked()]

The queue and the job record hold the value: this hides it from eyes, not from stores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from shared.errors import Malformed
from shared.strict_json import json_text, read_json, written

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Masked:
    """Marks a field of a payload whose value is not shown."""


def masked(payload: str, model: type[BaseModel] | None) -> str:
    """A payload's JSON text with what its schema hides as ***.

    Args:
        payload: JSON text.
        model: its schema; without one nobody knows what is secret, and every value is hidden.
    """
    try:
        parsed, _ = read_json(payload)
    except Malformed:
        return HIDDEN
    if not isinstance(parsed, dict):
        return HIDDEN
    if model is None:
        return json_text(dict.fromkeys(parsed, HIDDEN))
    return written(_masked(parsed, model))


def _masked(value: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, inner in value.items():
        found = model.model_fields.get(name)
        # What the schema does not know may be a secret under a misspelt name.
        shown[name] = HIDDEN if found is None or _is_secret(found) else _within(inner, found.annotation)
    return shown


def _within(value: Any, annotation: Any) -> Any:  # noqa: ANN401 - whatever a payload holds
    models = [part for part in _parts(annotation) if isinstance(part, type) and issubclass(part, BaseModel)]
    if not models or value is None:
        return value
    if isinstance(value, dict):
        # Of several models any may be meant: what one of those that fit hides is hidden, and what none knows.
        for model in [model for model in models if set(value) <= set(model.model_fields)] or models[:1]:
            value = _masked(value, model)
        return value
    if isinstance(value, list):
        return [_within(inner, annotation) for inner in value]
    return value if type(value) in _parts(annotation) else HIDDEN  # in the place of what has secrets


def _is_secret(found: FieldInfo) -> bool:
    return any(isinstance(mark, Masked) for mark in (*found.metadata, *_parts(found.annotation)))


def _parts(annotation: Any) -> list[Any]:  # noqa: ANN401 - as typing has it
    return [annotation, *(part for argument in get_args(annotation) for part in _parts(argument))]
