"""A synthesised template, to be asked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from audit.templates import Audited

Json = Any


@dataclass(frozen=True, slots=True)
class Template:
    """The resources of a template by logical name; `retain` says whether its data must outlive the stack."""

    resources: dict[str, Json]
    retain: bool

    @classmethod
    def read(cls, audited: Audited) -> Template:
        """The template of a file."""
        return cls(json.loads(audited.path.read_text(encoding="utf-8"))["Resources"], audited.retain)

    def of(self, kind: str) -> dict[str, Json]:
        """Properties of all resources of a type."""
        return {name: r.get("Properties", {}) for name, r in self.resources.items() if r["Type"] == kind}

    def kind(self, name: str) -> str:
        """The type of a resource; nothing for a name that is none's, like a parameter's."""
        kind: str = self.resources.get(name, {}).get("Type", "")
        return kind

    def called(self, value: Json) -> str | None:
        """The function that is called by a reference to it, or to an alias of it."""
        name = target(value)
        alias = self.of("AWS::Lambda::Alias").get(name or "")
        return name if alias is None else target(alias["FunctionName"])

    def statements(self) -> Iterator[tuple[str, Json]]:
        """Each statement that allows something, of identities and of resources, with who holds it."""
        for name, resource in self.resources.items():
            for document in _documents(resource.get("Properties", {})):
                for statement in listed(document.get("Statement", [])):
                    if statement["Effect"] == "Allow":
                        yield name, statement


def _documents(properties: Json) -> Iterator[Json]:
    for key in ("PolicyDocument", "KeyPolicy", "AssumeRolePolicyDocument"):
        if key in properties:
            yield properties[key]
    for policy in listed(properties.get("Policies", [])):
        if isinstance(policy, dict) and "PolicyDocument" in policy:
            yield policy["PolicyDocument"]


def listed(value: Json) -> list[Json]:
    """A value that stands for itself or for a list."""
    return value if isinstance(value, list) else [value]


def target(value: Json) -> str | None:
    """The logical name that a value refers to."""
    match value:
        case {"Ref": str() as name} | {"Fn::GetAtt": [str() as name, _]}:
            return name
        case _:
            return None
