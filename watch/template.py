"""Reading a synthesised template: resources by type, and values with each reference as the logical name in `<>`."""

from __future__ import annotations

from typing import Any

Template = dict[str, Any]


def resources(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    """The properties of all resources of a type, by logical name."""
    return {
        name: resource.get("Properties", {})
        for name, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def written(value: object) -> str:
    """A value as text."""
    match value:
        case {"Fn::Join": [str() as separator, list() as parts]}:
            return separator.join(map(written, parts))
        case {"Ref": str() as name} | {"Fn::GetAtt": [str() as name, _]}:
            return f"<{name}>"
        case _:
            return str(value)


def dimension(name: str, value: object) -> str:
    """The value of a dimension. The cache's name differs from stage to stage, and there is one."""
    return "<cache>" if name == "clusterId" else written(value)
