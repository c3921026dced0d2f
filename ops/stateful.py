"""What of a template holds data or an address that others know, and what an update would do to it. Plain Python over templates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Template = Any
# By type, the properties whose change makes CloudFormation replace the resource (CloudFormation template reference, "Update
# requires: Replacement"). The cache is none of these: what it holds may be lost at any time.
FIXED: Mapping[str, tuple[str, ...]] = {
    "AWS::ApiGatewayV2::Api": ("ProtocolType",),
    "AWS::DynamoDB::Table": ("TableName", "KeySchema", "LocalSecondaryIndexes"),
    "AWS::KMS::Key": ("KeySpec", "KeyUsage", "MultiRegion"),
    "AWS::Logs::LogGroup": ("LogGroupName",),
    "AWS::S3::Bucket": ("BucketName", "ObjectLockEnabled"),
    "AWS::SNS::Topic": ("TopicName", "FifoTopic"),
    "AWS::SQS::Queue": ("QueueName", "FifoQueue"),
}
KEPT = ("DeletionPolicy", "UpdateReplacePolicy")


@dataclass(frozen=True, slots=True)
class Harm:
    """What an update would do to something that is deployed: remove or replace it, and by which property."""

    name: str
    kind: str
    deed: str
    why: str


def held(template: Template) -> dict[str, dict[str, Any]]:
    """What a template holds, by logical name: its type and the properties that must not change."""
    found = {}
    for name, resource in template["Resources"].items():
        if (fixed := FIXED.get(resource["Type"])) is not None:
            properties = resource.get("Properties", {})
            found[name] = {
                "type": resource["Type"],
                "fixed": {each: properties[each] for each in fixed if each in properties},
            }
    return found


def harmed(before: Mapping[str, dict[str, Any]], after: Mapping[str, dict[str, Any]]) -> Iterator[Harm]:
    """What of `before` would be removed or replaced on the way to `after`; both as `held` gives them."""
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            yield Harm(name, old["type"], "removed", "it is no longer in the template")
        elif new["type"] != old["type"]:
            yield Harm(name, old["type"], "replaced", f"its type becomes {new['type']}")
        elif new["fixed"] != old["fixed"]:
            names = sorted(old["fixed"].keys() | new["fixed"].keys())
            changed = [each for each in names if old["fixed"].get(each) != new["fixed"].get(each)]
            yield Harm(name, old["type"], "replaced", f"{', '.join(changed)} cannot change in place")
