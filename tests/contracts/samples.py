"""Example payloads of a schema: one with what it demands and no more, one with every field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import find
from hypothesis import strategies as st

if TYPE_CHECKING:
    from tests.contracts.schema import Json


def samples(schema: Json) -> list[Json]:
    """The examples, each once."""
    least, whole = _sample(schema, "payload", whole=False), _sample(schema, "payload", whole=True)
    return [least] if least == whole else [least, whole]


def _sample(schema: Json, name: str, *, whole: bool) -> Any:
    match schema:
        case {"const": value}:
            return value
        case {"enum": [first, *_]}:
            return first
        case {"anyOf": [*kinds]}:
            told = [kind for kind in kinds if kind.get("type") != "null"]
            return _sample(told[0], name, whole=whole)
        case {"type": "object"}:
            demanded = schema.get("required", [])
            fields = {key: part for key, part in schema.get("properties", {}).items() if whole or key in demanded}
            return {key: _sample(part, key, whole=whole) for key, part in fields.items()}
        case {"type": "array"}:
            number = max(schema.get("minItems", 0), int(whole))
            return [_sample(schema.get("items", {"type": "null"}), name, whole=whole) for _ in range(number)]
        case {"type": "string"}:
            return _text(schema, name)
        case {"type": "integer" | "number"}:
            return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        case {"type": "boolean"}:
            return True
        case _:
            return None


def _text(schema: Json, name: str) -> str:
    if "pattern" in schema:
        pattern = schema["pattern"].removeprefix("^").removesuffix("$")
        example: str = find(st.from_regex(pattern, fullmatch=True), lambda _: True)
        return example
    if schema.get("format") == "date-time":
        return "2026-01-01T00:00:00Z"
    text = f"{name}-1".ljust(schema.get("minLength", 0), "x")
    return text[: schema.get("maxLength", len(text))]
