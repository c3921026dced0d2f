"""Takes out of the template what the stand-in does not know: networking, the managed cache, alarms over metric math and of other alarms.

Works on a copy of the assembly; the template deployed locally differs from the synthesised one by this file alone.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from local.processes.environment import ACCOUNT, REGION
from shared.errors import TahanError
from shared.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Template = dict[str, Any]

HOST_ATTRIBUTES = ("Endpoint.Address", "PrimaryEndPoint.Address", "ConfigurationEndPoint.Address")
PORT_ATTRIBUTES = ("Endpoint.Port", "PrimaryEndPoint.Port", "ConfigurationEndPoint.Port")
CACHE_SETTINGS = {  # no TLS, no cluster, no users
    f"{PREFIX}CACHE_TLS": "false",
    f"{PREFIX}CACHE_CLUSTER": "false",
    f"{PREFIX}CACHE_USER": "",
    f"{PREFIX}CACHE_NAME": "",
}


class Unknown(StrEnum):
    """What the stand-in does not know, and what becomes of references to it."""

    NETWORK = "network"  # nothing that stays may refer to it, but a function's VpcConfig, which goes too
    CACHE = "cache"  # its address becomes that of the local Valkey
    ALARM = "alarm"  # over metric math, or of other alarms; the dashboard may go on naming it


def kind_of(resource: Template) -> Unknown | None:
    """Why a resource is taken out; None for one that stays."""
    match resource:
        case {"Type": str() as name} if name.startswith(("AWS::EC2::", "Custom::VpcRestrictDefaultSG")):
            return Unknown.NETWORK
        case {"Type": str() as name} if name.startswith("AWS::ElastiCache::"):
            return Unknown.CACHE
        case {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Metrics": _}}:
            return Unknown.ALARM
        case {"Type": "AWS::CloudWatch::CompositeAlarm"}:
            return Unknown.ALARM
        case _:
            return None


class TemplateError(TahanError):
    """The template uses something that was taken out: extend the list in local/stack/adapted.py."""


@dataclass(frozen=True, slots=True)
class Cache:
    """Where the local Valkey listens."""

    host: str
    port: int


def adapt_assembly(assembly: Path, copy: Path, cache: Cache) -> Path:
    """Copy a synthesised assembly to `copy` and adapt the templates of its stacks there.

    Raises:
        TemplateError: something that stays needs something that goes.
    """
    shutil.copytree(assembly, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    for artifact in manifest["artifacts"].values():
        if artifact["type"] == "aws:cloudformation:stack":
            file = copy / artifact["properties"]["templateFile"]
            file.write_text(json.dumps(adapt_template(json.loads(file.read_text()), cache), indent=1))
    return copy


def adapt_template(template: Template, cache: Cache) -> Template:
    """The template without what the stand-in does not know; functions find the local Valkey instead.

    Raises:
        TemplateError: something that stays needs something that goes.
    """
    resources: Template = template["Resources"]
    unknown = {name: kind for name, resource in resources.items() if (kind := kind_of(resource))}
    substitute = _Substitute(unknown, cache)
    outputs = {
        name: output
        for name, output in template.get("Outputs", {}).items()
        if unknown.keys().isdisjoint(_names(output["Value"]))
    }
    kept = {
        name: substitute.resource(name, _without_network(resource))
        for name, resource in resources.items()
        if name not in unknown
    }
    return {**template, "Resources": kept, **({"Outputs": outputs} if outputs else {})}


@dataclass(frozen=True, slots=True)
class _Substitute:
    """Puts something local in place of each reference to what was taken out."""

    unknown: Mapping[str, Unknown]
    cache: Cache

    def resource(self, name: str, resource: Template) -> Template:
        depends = resource.get("DependsOn", [])
        left = [other for other in ([depends] if isinstance(depends, str) else depends) if other not in self.unknown]
        rest = {key: self.value(name, value) for key, value in resource.items() if key != "DependsOn"}
        return {**rest, "DependsOn": left} if left else rest

    def value(self, place: str, value: Any) -> Any:  # noqa: ANN401 - any JSON
        match value:
            case {"Ref": str() as name}:
                return self._reference(place, name, "Ref", value)
            case {"Fn::GetAtt": [str() as name, str() as attribute]}:
                return self._reference(place, name, attribute, value)
            case {"Fn::Sub": _} if not self.unknown.keys().isdisjoint(_names(value)):
                return self._refuse(place, str(value["Fn::Sub"]))
            case dict():
                return {key: self.value(place, inner) for key, inner in value.items()}
            case list():
                return [self.value(place, inner) for inner in value]
            case _:
                return value

    def _reference(self, place: str, name: str, attribute: str, value: Template) -> object:
        match self.unknown.get(name):
            case None:
                return value
            case Unknown.NETWORK:
                return self._refuse(place, f"{name}.{attribute}")
            case Unknown.CACHE if attribute in HOST_ATTRIBUTES:
                return self.cache.host
            case Unknown.CACHE if attribute in PORT_ATTRIBUTES:
                return str(self.cache.port)
            case kind:
                return f"arn:aws:{kind}:{REGION}:{ACCOUNT}:{name}" if attribute.lower() == "arn" else name

    def _refuse(self, place: str, what: str) -> object:
        message = f"{place} uses {what}, which the local stack takes out: extend the list in local/stack/adapted.py."
        raise TemplateError(message)


def _without_network(resource: Template) -> Template:
    """A function outside any network, told how the local Valkey is spoken to."""
    if resource["Type"] != "AWS::Lambda::Function":
        return resource
    properties = {name: value for name, value in resource["Properties"].items() if name != "VpcConfig"}
    variables = properties.get("Environment", {}).get("Variables", {})
    if f"{PREFIX}CACHE_HOST" in variables:
        properties["Environment"] = {"Variables": {**variables, **CACHE_SETTINGS}}
    return {**resource, "Properties": properties}


def _names(value: object) -> set[str]:
    """Every logical name that a value refers to, `${...}` in Fn::Sub included."""
    match value:
        case {"Ref": str() as name}:
            return {name}
        case {"Fn::GetAtt": [str() as name, *_]}:
            return {name}
        case {"Fn::Sub": str() as text} | {"Fn::Sub": [str() as text, *_]}:
            parts = (part.partition("}")[0] for part in text.split("${")[1:])
            return {part.partition(".")[0] for part in parts}
        case dict():
            return set().union(*(_names(inner) for inner in value.values()))
        case list():
            return set().union(*(_names(inner) for inner in value))
        case _:
            return set()
