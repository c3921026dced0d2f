"""Clients for the stand-in: the credentials, profile and endpoint of the caller's environment are never looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore.config import Config

from local.processes.environment import CREDENTIALS, REGION, loopback

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackResourceSummaryTypeDef
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

# A variable of botocore is (key in the config file, environment variable, value, conversion).
UNSET_PROFILE = (None, None, None, None)
NO_FILE = (None, None, os.devnull, None)


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients that the demo needs."""

    sqs: SQSClient
    dynamodb: DynamoDBClient
    functions: LambdaClient
    cloudformation: CloudFormationClient
    s3: S3Client

    @classmethod
    def at(cls, endpoint: str) -> Clients:
        """Clients for the stand-in at `endpoint`.

        Raises:
            SettingsError: the endpoint is not on this machine.
        """
        loopback(endpoint)
        session, config = _session()
        return cls(
            sqs=session.client("sqs", endpoint_url=endpoint, config=config),
            dynamodb=session.client("dynamodb", endpoint_url=endpoint, config=config),
            functions=session.client("lambda", endpoint_url=endpoint, config=config),
            cloudformation=session.client("cloudformation", endpoint_url=endpoint, config=config),
            s3=session.client("s3", endpoint_url=endpoint, config=config),
        )

    def resources(self, stack: str) -> list[StackResourceSummaryTypeDef]:
        """All that a stack has made, by its logical and its own names."""
        pages = self.cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
        return [resource for page in pages for resource in page["StackResourceSummaries"]]


def client(endpoint: str, service: str) -> Any:  # noqa: ANN401 - boto3 builds the class at run time
    """A client of one more service of the stand-in at `endpoint`."""
    session, config = _session()
    untyped: Any = session.client
    return untyped(service, endpoint_url=loopback(endpoint), config=config)


def _session() -> tuple[boto3.Session, Config]:
    session = boto3.Session(
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=CREDENTIALS["AWS_SESSION_TOKEN"],
        region_name=REGION,
        botocore_session=botocore.session.Session(
            session_vars={"profile": UNSET_PROFILE, "config_file": NO_FILE, "credentials_file": NO_FILE}
        ),
    )
    return session, Config(connect_timeout=2, read_timeout=10, retries={"total_max_attempts": 3}, proxies={})
