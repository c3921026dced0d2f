"""What of a template holds data or an address that others know, and what an update would do to it. Plain Python over templates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Template = Any
Held = dict[str, dict[str, Any]]
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
# Properties that keep data from being deleted, or say when it is forgotten.
PROTECTS: Mapping[str, tuple[str, ...]] = {
    "AWS::DynamoDB::Table": (
        "DeletionProtectionEnabled",
        "PointInTimeRecoverySpecification",
        "TimeToLiveSpecification",
    ),
    "AWS::Logs::LogGroup": ("RetentionInDays",),
    "AWS::SQS::Queue": ("MessageRetentionPeriod",),
}
LONGER_IS_SAFER = frozenset({"MessageRetentionPeriod", "RetentionInDays"})


@dataclass(frozen=True, slots=True)
class Harm:
    """What an update would do to something that is deployed: remove, replace or unprotect it, and by which property."""

    name: str
    kind: str
    deed: str
    why: str


def held(template: Template) -> Held:
    """What a template holds, by logical name: its type, the properties that must not change, and those that protect it."""
    found = {}
    for name, resource in template["Resources"].items():
        if (fixed := FIXED.get(resource["Type"])) is not None:
            properties = resource.get("Properties", {})
            protects = PROTECTS.get(resource["Type"], ())
            found[name] = {
                "type": resource["Type"],
                "fixed": {each: properties[each] for each in fixed if each in properties},
                "protected": {
                    **{each: resource[each] for each in KEPT if each in resource},
                    **{each: properties[each] for each in protects if each in properties},
                },
            }
    return found


def harmed(before: Held, after: Held) -> Iterator[Harm]:
    """What of `before` would be removed, replaced or unprotected on the way to `after`; both as `held` gives them."""
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            yield Harm(name, old["type"], "removed", "it is no longer in the template")
        elif new["type"] != old["type"]:
            yield Harm(name, old["type"], "replaced", f"its type becomes {new['type']}")
        elif changed := _changed(old["fixed"], new["fixed"]):
            yield Harm(name, old["type"], "replaced", f"{', '.join(changed)} cannot change in place")
        elif lost := [each for each in _changed(old["protected"], new["protected"]) if _is_less(each, old, new)]:
            yield Harm(name, old["type"], "less protected", f"{', '.join(lost)} would be less than what is deployed")


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [each for each in sorted(old.keys() | new.keys()) if old.get(each) != new.get(each)]


def _is_less(name: str, old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether a changed property protects less; what protected nothing before cannot."""
    before, after = old["protected"].get(name), new["protected"].get(name)
    if name in KEPT:
        return bool(before == "Retain")
    if name in LONGER_IS_SAFER:
        return before is not None and bool(after is None or after < before)
    return bool(before)
