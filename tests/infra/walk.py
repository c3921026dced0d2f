"""Reads a synthesised template: resources by type, what a value refers to, and who may do what."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = Any
NONCE = re.compile(r"[0-9A-F]{8}$")


@dataclass(frozen=True)
class Grant:
    """One action on one resource, by the name that the resource has in the template."""

    action: str
    resource: str
    conditions: Json


@dataclass(frozen=True)
class Walk:
    """A template, to be asked."""

    name: str
    template: Json

    def of(self, kind: str) -> dict[str, Json]:
        """Properties of all resources of a type, by logical name."""
        resources = self.template["Resources"].items()
        return {name: resource.get("Properties", {}) for name, resource in resources if resource["Type"] == kind}

    def mappings(self, service: str) -> dict[str, Json]:
        """Event source mappings whose source is a queue ("SQS") or a table's stream ("DynamoDB")."""
        kinds = {name: resource["Type"] for name, resource in self.template["Resources"].items()}
        found = self.of("AWS::Lambda::EventSourceMapping")
        return {n: m for n, m in found.items() if kinds[target(m["EventSourceArn"])].startswith(f"AWS::{service}::")}

    def streamed(self, name: str) -> Json:
        """The mapping of a stream's reader: `relay` or `part-counter`."""
        handler = {"relay": "functions.outbox_relay.handler", "part-counter": "functions.part_counter.handler"}[name]
        functions = self.of("AWS::Lambda::Function")
        (found,) = [
            mapped
            for mapped in self.mappings("DynamoDB").values()
            if functions[self.called(mapped["FunctionName"])]["Handler"] == handler
        ]
        return found

    def called(self, value: Json) -> str:
        """The function behind what is called: its alias, and no function itself."""
        return target(self.of("AWS::Lambda::Alias")[target(value)]["FunctionName"])

    def dead_letter_queues(self) -> set[str]:
        """Queues that another one names as its dead-letter queue."""
        queues = self.of("AWS::SQS::Queue").values()
        return {target(queue["RedrivePolicy"]["deadLetterTargetArn"]) for queue in queues if "RedrivePolicy" in queue}

    def source_queues(self) -> dict[str, Json]:
        """Queues that feed a function."""
        queues = self.of("AWS::SQS::Queue")
        return {n: queues[n] for n in (target(m["EventSourceArn"]) for m in self.mappings("SQS").values())}

    def grants(self, role: str) -> list[Grant]:
        """Everything a role is allowed; there are no other policies than those of their own."""
        assert not self.of("AWS::IAM::ManagedPolicy")
        assert "ManagedPolicyArns" not in self.of("AWS::IAM::Role")[role]
        statements = [
            statement
            for policy in self.of("AWS::IAM::Policy").values()
            if {"Ref": role} in policy["Roles"]
            for statement in policy["PolicyDocument"]["Statement"]
        ]
        return [
            Grant(action, resource if isinstance(resource, str) else target(resource), statement.get("Condition"))
            for statement in statements
            if statement["Effect"] == "Allow"
            for action in listed(statement["Action"])
            for resource in listed(statement["Resource"])
        ]

    def functions_by_role(self) -> dict[str, str]:
        """The function of each role."""
        return {target(f["Role"]): name for name, f in self.of("AWS::Lambda::Function").items()}

    def key_statements(self, key: str) -> Iterator[tuple[str, set[str], Json]]:
        """Service principal, actions and conditions of the key policy's statements."""
        for statement in self.of("AWS::KMS::Key")[key]["KeyPolicy"]["Statement"]:
            if service := statement["Principal"].get("Service"):
                yield text(service), set(listed(statement["Action"])), statement.get("Condition")


def listed(value: Json) -> list[Json]:
    """A value that stands for itself or for a list."""
    return value if isinstance(value, list) else [value]


def target(value: Json) -> str:
    """The logical name that a value refers to."""
    match value:
        case {"Ref": str() as name} | {"Fn::GetAtt": [str() as name, _]}:
            return name
        case {"Fn::Join": ["", [inner, str() as rest]]} if rest.startswith("/index/"):
            return target(inner)  # an index belongs to its table
        case {"Fn::Join": ["", [inner, ":live"]]}:
            return target(inner)  # an alias belongs to its function
        case {"Fn::Join": ["", [inner, str() as rest]]} if rest.endswith("/*"):
            return target(inner)  # a folder belongs to its bucket
        case {"Fn::Join": ["", [*_, ":event-source-mapping:", inner]]}:
            return target(inner)
    message = f"{value!r} refers to no resource of this template"
    raise AssertionError(message)


def text(value: Json) -> str:
    """A value as it would read, with references by their names."""
    match value:
        case {"Fn::Join": [str() as separator, list() as parts]}:
            return separator.join(map(text, parts))
        case {"Ref": str() as name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [str() as name, str() as attribute]}:
            return f"<{name}.{attribute}>"
        case _:
            return str(value)


def plain(logical_name: str) -> str:
    """A logical name without the letters that CDK puts behind it."""
    return NONCE.sub("", logical_name)


def references(value: Json) -> set[str]:
    """Every logical name that a value refers to."""
    match value:
        case {"Ref": str() as name} | {"Fn::GetAtt": [str() as name, _]}:
            return {name}
        case {"Fn::Sub": pattern}:
            return set(re.findall(r"\$\{([A-Za-z0-9]+)", str(pattern)))
        case dict():
            return set().union(*map(references, value.values()))
        case list():
            return set().union(*map(references, value))
        case _:
            return set()
