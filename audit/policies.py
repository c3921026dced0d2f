"""The policies of roles as IAM would see them: references to resources written out as the ARNs they will be.

parliament looks whether actions exist and fit to the kind of resource, which an unresolved reference would hide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from audit.tools import GateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from audit.template import Template

Json = Any
ACCOUNT = "123456789012"
PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::AccountId": ACCOUNT,
    "AWS::URLSuffix": "amazonaws.com",
}
HERE = f"eu-west-1:{ACCOUNT}"
ARNS = {
    ("AWS::CloudWatch::Alarm", "Arn"): f"arn:aws:cloudwatch:{HERE}:alarm:{{}}",
    ("AWS::DynamoDB::Table", "Arn"): f"arn:aws:dynamodb:{HERE}:table/{{}}",
    ("AWS::DynamoDB::Table", "StreamArn"): f"arn:aws:dynamodb:{HERE}:table/{{}}/stream/label",
    ("AWS::ElastiCache::ServerlessCache", "ARN"): f"arn:aws:elasticache:{HERE}:serverlesscache:{{}}",
    ("AWS::ElastiCache::User", "Arn"): f"arn:aws:elasticache:{HERE}:user:{{}}",
    ("AWS::KMS::Key", "Arn"): f"arn:aws:kms:{HERE}:key/{{}}",
    ("AWS::Lambda::Function", "Arn"): f"arn:aws:lambda:{HERE}:function:{{}}",
    ("AWS::Lambda::EventSourceMapping", "Ref"): "{}",
    ("AWS::Logs::LogGroup", "Arn"): f"arn:aws:logs:{HERE}:log-group:{{}}:*",
    ("AWS::S3::Bucket", "Arn"): "arn:aws:s3:::{}",
    ("AWS::SNS::Topic", "Ref"): f"arn:aws:sns:{HERE}:{{}}",
    ("AWS::SQS::Queue", "Arn"): f"arn:aws:sqs:{HERE}:{{}}",
}


def policies(template: Template) -> Iterator[tuple[str, Json]]:
    """Each policy of a role, under the name of the resource that holds it.

    Raises:
        GateError: one refers to something of a kind that has no ARN here yet.
    """
    for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        for name, properties in template.of(kind).items():
            yield name, _written_out(template, properties["PolicyDocument"])
    for name, properties in template.of("AWS::IAM::Role").items():
        for policy in properties.get("Policies", []):
            yield name, _written_out(template, policy["PolicyDocument"])


def _written_out(template: Template, value: Json) -> Json:
    match value:
        case {"Ref": str() as name}:
            return PSEUDO.get(name) or _arn(template, name, "Ref")
        case {"Fn::GetAtt": [str() as name, str() as attribute]}:
            return _arn(template, name, attribute)
        case {"Fn::Join": [str() as separator, list() as parts]}:
            return separator.join(_written_out(template, part) for part in parts)
        case dict():
            return {key: _written_out(template, inner) for key, inner in value.items()}
        case list():
            return [_written_out(template, inner) for inner in value]
        case _:
            return value


def _arn(template: Template, name: str, attribute: str) -> str:
    kind = template.kind(name)
    if (kind, attribute) not in ARNS:
        raise GateError(f"a policy refers to {attribute} of {name}, a {kind}: extend ARNS in audit/policies.py.")
    return ARNS[kind, attribute].format(name)
