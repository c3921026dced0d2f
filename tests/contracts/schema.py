"""The schema of a payload without what changes no message: titles, descriptions, the order and the names of its parts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel

Json = dict[str, Any]
TOLD = frozenset({"title", "description", "examples", "$defs"})
UNORDERED = frozenset({"required", "enum", "anyOf", "oneOf", "allOf", "type"})
VALUES = frozenset({"default", "const"})
BY_NAME = frozenset({"properties", "patternProperties", "dependentRequired"})
DEFINED = "#/$defs/"


def schema_of(payload: type[BaseModel]) -> Json:
    """The normalised JSON schema of a payload."""
    whole = payload.model_json_schema()
    found: Json = _normal(whole, whole.get("$defs", {}), ())
    return found


def differences(one: object, other: object, where: str = "") -> Iterator[str]:
    """Where two normalised schemas differ, as paths."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys()):
            yield from differences(one.get(name), other.get(name), f"{where}.{name}" if where else name)
    elif one != other:
        yield where


def _normal(part: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(part, list):
        return [_normal(each, definitions, inside) for each in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        name = part["$ref"].removeprefix(DEFINED)
        if name in inside:  # how many models further out it begins again
            return {"again": len(inside) - inside.index(name)}
        beside = {key: value for key, value in part.items() if key != "$ref"}
        return _normal({**definitions[name], **beside}, definitions, (*inside, name))
    found: Json = {}
    for key, value in part.items():
        if key in TOLD:
            continue
        if key in BY_NAME:
            found[key] = {name: _normal(inner, definitions, inside) for name, inner in sorted(value.items())}
        elif key in VALUES:
            found[key] = value
        else:
            normal = _normal(value, definitions, inside)
            in_order = sorted(normal, key=_text) if key in UNORDERED and isinstance(normal, list) else normal
            found[key] = in_order
    return dict(sorted(found.items()))


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)
