"""The rules that no tool has. Each looks at a whole template and tells resources with what is wrong about them.

A rule that finds several things in one resource names each, so that an exception excuses that one alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from audit.template import listed, target
from shared.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from audit.template import Template

Json = Any
DEFAULT_RETENTION = 4 * 24 * 60 * 60
DEFAULT_VISIBILITY = 30
DEFAULT_TIMEOUT = 3
# What outlives the stack where data is real: all that holds some, and the key without which it could not be read.
HOLDS_DATA = (
    "AWS::DynamoDB::Table",
    "AWS::KMS::Key",
    "AWS::Logs::LogGroup",
    "AWS::S3::Bucket",
    "AWS::SQS::Queue",
)
SECRET_NAME = re.compile(r"PASSWORD|PASSWD|SECRET|CREDENTIAL|PRIVATE|TOKEN|API_?KEY|ACCESS_?KEY", re.IGNORECASE)
SECRET_VALUE = re.compile(
    r"AKIA[0-9A-Z]{16}|-----BEGIN|^eyJ[\w-]+\.|://[^/\s:@]+:[^/\s@]+@|^(?:[A-Za-z0-9+/]{40,}={0,2}|[0-9a-f]{32,})$"
)
# Where each kind says in which security groups it is; without any it is in the default one of its network.
GROUPS = {
    "AWS::EC2::VPCEndpoint": ("SecurityGroupIds",),
    "AWS::ElastiCache::ServerlessCache": ("SecurityGroupIds",),
    "AWS::Lambda::Function": ("VpcConfig", "SecurityGroupIds"),
}
OF_TOOLS = ("cdk_nag", "cfn-lint", "checkov")


class Fault(NamedTuple):
    """A resource and what is wrong about it; `thing` is which of several.

    The rule's id is then spelled as cdk-nag does, `TAHAN-STAR-ACTION[kms:*]`.
    """

    resource: str
    message: str
    thing: str = ""


def visibility(template: Template) -> Iterator[Fault]:
    """A message stays hidden for six runs of its function and the window in which a batch is gathered."""
    functions, queues = template.of("AWS::Lambda::Function"), template.of("AWS::SQS::Queue")
    for mapping, mapped in template.of("AWS::Lambda::EventSourceMapping").items():
        name, function = target(mapped["EventSourceArn"]), template.called(mapped["FunctionName"])
        if name not in queues:
            continue
        if function not in functions:
            yield Fault(mapping, "calls no function of this template, so that nobody knows how long its batches take")
            continue
        window = mapped.get("MaximumBatchingWindowInSeconds", 0)
        needed = 6 * functions[function].get("Timeout", DEFAULT_TIMEOUT) + window
        hidden = queues[name].get("VisibilityTimeout", DEFAULT_VISIBILITY)
        if hidden < needed:
            yield Fault(name, f"hides a message for {hidden} s, six runs of {function} and the window take {needed} s")


def dead_letter_retention(template: Template) -> Iterator[Fault]:
    """A dead letter is kept longer than the message it was, since its age may count from the first enqueue."""
    for name, source, dead in _pairs(template):
        kept = template.of("AWS::SQS::Queue")[dead].get("MessageRetentionPeriod", DEFAULT_RETENTION)
        if kept <= source.get("MessageRetentionPeriod", DEFAULT_RETENTION):
            yield Fault(dead, f"keeps dead letters for {kept} s, no longer than {name} keeps messages")


def redrive_allow(template: Template) -> Iterator[Fault]:
    """A dead-letter queue names the queues that may use it."""
    for _, _, dead in _pairs(template):
        allowed = template.of("AWS::SQS::Queue")[dead].get("RedriveAllowPolicy", {})
        if allowed.get("redrivePermission") != "byQueue" or not allowed.get("sourceQueueArns"):
            yield Fault(dead, "is a dead-letter queue for any queue of the account: RedriveAllowPolicy names none")


def cache_users(template: Template) -> Iterator[Fault]:
    """The cache asks who is there: its users come by IAM, none is the default one, and none may do everything."""
    groups = template.of("AWS::ElastiCache::UserGroup")
    for name, cache in template.of("AWS::ElastiCache::ServerlessCache").items():
        if target(cache.get("UserGroupId")) not in groups:
            yield Fault(name, "has no user group of this template: whoever reaches it could read and change everything")
    for name, user in template.of("AWS::ElastiCache::User").items():
        rules = str(user.get("AccessString", "")).split()
        if user.get("AuthenticationMode", {}).get("Type") != "iam" or user.get("NoPasswordRequired"):
            yield Fault(name, "is not vouched for by IAM")
        if user.get("UserName") == "default":
            yield Fault(name, "is the default user, which every client is that says nothing")
        if {"+@all", "allcommands", "~*", "allkeys"} & set(rules):
            yield Fault(name, "may send every command, or reach every key")


def cache_client(template: Template) -> Iterator[Fault]:
    """Whoever is told of the cache speaks TLS to it, as a user of it."""
    for name, function in template.of("AWS::Lambda::Function").items():
        told = function.get("Environment", {}).get("Variables", {})
        if not told.get(f"{PREFIX}CACHE_HOST"):
            continue
        if told.get(f"{PREFIX}CACHE_TLS") != "true":
            yield Fault(name, "speaks to the cache without TLS")
        if not told.get(f"{PREFIX}CACHE_USER"):
            yield Fault(name, "speaks to the cache as no user")


def default_group(template: Template) -> Iterator[Fault]:
    """Nothing is in a network's default security group, which is open inside, and which CloudFormation cannot close."""
    for kind, path in GROUPS.items():
        for name, properties in template.of(kind).items():
            if properties.get("VpcEndpointType") == "Gateway" or (len(path) > 1 and path[0] not in properties):
                continue
            groups = properties
            for part in path:
                groups = groups.get(part, {})
            if not groups or any("DefaultSecurityGroup" in str(group) for group in groups):
                yield Fault(name, "is in the default security group of its network")


def public_bucket(template: Template) -> Iterator[Fault]:
    """No bucket can be made public, whatever a policy or an object says."""
    blocks = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    for name, bucket in template.of("AWS::S3::Bucket").items():
        if missing := [
            block for block in blocks if bucket.get("PublicAccessBlockConfiguration", {}).get(block) is not True
        ]:
            yield Fault(name, f"does not set {', '.join(missing)}")


def kept_data(template: Template) -> Iterator[Fault]:
    """Where data is real it outlives the stack and a replacement, and tables refuse to be deleted."""
    if not template.retain:
        return
    for name, resource in template.resources.items():
        if resource["Type"] not in HOLDS_DATA:
            continue
        if {resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy")} != {"Retain"}:
            yield Fault(name, "goes with the stack: DeletionPolicy and UpdateReplacePolicy are not both Retain")
        if resource["Type"] == "AWS::DynamoDB::Table" and not resource["Properties"].get("DeletionProtectionEnabled"):
            yield Fault(name, "has no deletion protection")


def star_action(template: Template) -> Iterator[Fault]:
    """No action is a pattern."""
    for name, statement in template.statements():
        for action in listed(statement["Action"]):
            if "*" in action:
                yield Fault(name, f"allows {action}", action)


def star_resource(template: Template) -> Iterator[Fault]:
    """Nothing is allowed on everything, but by a key's policy: its "*" is the key itself."""
    for name, statement in template.statements():
        if "*" in listed(statement.get("Resource", [])) and template.kind(name) != "AWS::KMS::Key":
            for action in listed(statement["Action"]):
                yield Fault(name, f"allows {action} on everything", action)


def star_principal(template: Template) -> Iterator[Fault]:
    """Nothing is allowed to everybody."""
    for name, statement in template.statements():
        principal = statement.get("Principal")
        if principal == "*" or (isinstance(principal, dict) and "*" in listed(principal.get("AWS"))):
            yield Fault(name, f"allows {', '.join(listed(statement['Action']))} to everybody", statement.get("Sid", ""))


def function_log(template: Template) -> Iterator[Fault]:
    """A function writes JSON of a chosen level into a log group of this template, which has retention and key."""
    groups = template.of("AWS::Logs::LogGroup")
    for name, function in template.of("AWS::Lambda::Function").items():
        logging = function.get("LoggingConfig", {})
        if target(logging.get("LogGroup")) not in groups:
            yield Fault(name, "writes into a log group that nobody declared: it never expires and has no key")
        if logging.get("LogFormat") != "JSON" or "ApplicationLogLevel" not in logging:
            yield Fault(name, "writes no JSON, or of every level")


def secret(template: Template) -> Iterator[Fault]:
    """No function is told a secret by its environment: not by the name of a variable, and not by its value."""
    for name, function in template.of("AWS::Lambda::Function").items():
        for variable, value in function.get("Environment", {}).get("Variables", {}).items():
            if SECRET_NAME.search(variable) or (isinstance(value, str) and SECRET_VALUE.search(value)):
                yield Fault(name, f"{variable} looks like a secret")


def one_file(template: Template) -> Iterator[Fault]:
    """Exceptions stand in `exceptions.toml` alone, where each has a reason and an end: not in the template."""
    for name, resource in template.resources.items():
        if silenced := [tool for tool in OF_TOOLS if tool in resource.get("Metadata", {})]:
            yield Fault(name, f"silences {', '.join(silenced)} in its metadata")


RULES: dict[str, Callable[[Template], Iterator[Fault]]] = {
    "TAHAN-VISIBILITY": visibility,
    "TAHAN-DEAD-LETTER-RETENTION": dead_letter_retention,
    "TAHAN-REDRIVE-ALLOW": redrive_allow,
    "TAHAN-CACHE-USERS": cache_users,
    "TAHAN-CACHE-CLIENT": cache_client,
    "TAHAN-DEFAULT-GROUP": default_group,
    "TAHAN-PUBLIC-BUCKET": public_bucket,
    "TAHAN-KEPT-DATA": kept_data,
    "TAHAN-STAR-ACTION": star_action,
    "TAHAN-STAR-RESOURCE": star_resource,
    "TAHAN-STAR-PRINCIPAL": star_principal,
    "TAHAN-FUNCTION-LOG": function_log,
    "TAHAN-SECRET": secret,
    "TAHAN-ONE-FILE": one_file,
}


def _pairs(template: Template) -> Iterator[tuple[str, Json, str]]:
    """Each queue that has a dead-letter queue of this template: its name, its properties, that one's name."""
    queues = template.of("AWS::SQS::Queue")
    for name, queue in queues.items():
        dead = target(queue.get("RedrivePolicy", {}).get("deadLetterTargetArn"))
        if dead in queues and dead is not None:
            yield name, queue, dead
