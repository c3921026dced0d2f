"""What a payload's schema may be: values that DynamoDB keeps, and that are the same at each delivery; and how a breach is told."""

from __future__ import annotations

import re
import types
import typing
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, SecretBytes, SecretStr

from shared.errors import DeclarationError

if TYPE_CHECKING:
    from pydantic import ValidationError

MOST_TOLD = 20  # of what is wrong with one payload
LONGEST_NAME = 40
_NOT_IN_NAMES = re.compile(r"[^\w-]")


class Payload(BaseModel):
    """The arguments of a job: frozen, strict, no extra fields, no floats (DynamoDB has none; use Decimal or str)."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


def check_payload_schema(name: str, model: type[BaseModel], seen: set[type]) -> None:
    """Refuse a schema that DynamoDB could not keep, or whose fingerprint would not be stable.

    Raises:
        DeclarationError: with the repair; `name` says whose schema it is, `seen` which models were checked already.
    """
    seen.add(model)
    if not model.model_config.get("frozen") or model.model_config.get("extra") != "forbid":
        message = f"{name}: {model.__name__} loosens what Payload promises: keep it frozen, without extra fields."
        raise DeclarationError(message)
    for field_name, model_field in model.model_fields.items():
        where = f"{name}: {model.__name__}.{field_name}"
        if model_field.default_factory is not None:
            message = f"{where} has a default_factory: each delivery would be another payload. Give it a plain default."
            raise DeclarationError(message)
        for part in _parts(model_field.annotation):
            if part in _NOT_IN_PAYLOADS:
                message = f"{where} is {_NOT_IN_PAYLOADS[part]}"
                raise DeclarationError(message)
            if isinstance(part, type) and issubclass(part, BaseModel) and part not in seen:
                check_payload_schema(name, part, seen)


_NOT_IN_PAYLOADS: dict[object, str] = {
    float: "a float, DynamoDB has none: use Decimal, int or str.",
    set: "a set, which has no order to compare payloads by: use a tuple.",
    frozenset: "a set, which has no order to compare payloads by: use a tuple.",
    Any: "Any: say what it is, so that it can be checked.",
    SecretStr: "a SecretStr, whose fingerprint would be that of asterisks: use Annotated[str, Masked()].",
    SecretBytes: "SecretBytes, whose fingerprint would be that of asterisks: use Annotated[bytes, Masked()].",
    object: "any object: say what it is, so that it can be checked.",
}


def _parts(annotation: object) -> list[object]:
    origin = get_origin(annotation)
    if origin is typing.Literal:
        return []
    if isinstance(annotation, types.GenericAlias | types.UnionType) or origin is not None:
        return [origin, *(part for argument in get_args(annotation) for part in _parts(argument))]
    return [annotation]


def describe(error: ValidationError) -> str:
    """What is wrong, field by field, without any of the values."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(map(_named, problem['loc'])) or 'body'}: {problem['type']}" for problem in problems[:MOST_TOLD]]
    more = len(problems) - len(told)
    return "; ".join([*told, *([f"body: {more}_more"] if more else [])])


def _named(part: int | str) -> str:
    """A field's name as it may be told: who sends a field that no schema has may call it anything, and at any length."""
    return _NOT_IN_NAMES.sub("?", str(part)[:LONGEST_NAME])
