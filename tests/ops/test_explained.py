"""What AWS says, in sentences that say what to do."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ReadTimeoutError

from ops.exits import CommandError, Exit
from ops.explained import explained
from shared.errors import Refused


def of_aws(code: str) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": "User: arn:aws:iam::1:user/x is not authorized"}}, "DescribeStacks"
    )


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (of_aws("AccessDenied"), "AWS refuses DescribeStacks (AccessDenied). Your credentials lack that permission"),
        (
            of_aws("ExpiredToken"),
            "AWS refuses DescribeStacks (ExpiredToken). The credentials are no longer good: sign in",
        ),
        (of_aws("Throttling"), "AWS refuses DescribeStacks (Throttling)."),
        (NoCredentialsError(), "There are no AWS credentials that can be used (NoCredentialsError): sign in"),
        (ReadTimeoutError(endpoint_url="http://x"), "AWS gave no answer (ReadTimeoutError). Look at the network"),
    ],
    ids=str,
)
def test_an_error_of_aws_ends_the_command_with_what_to_do(error: Exception, says: str) -> None:
    with pytest.raises(CommandError) as raised, explained():
        raise error
    assert str(raised.value).startswith(says)
    assert raised.value.status is Exit.NOT_DONE


def test_what_can_never_be_sent_is_the_callers_to_repair() -> None:
    refusal = Refused("sqs refuses it.")
    with pytest.raises(CommandError) as raised, explained():
        raise refusal
    assert raised.value.status is Exit.REFUSED


def test_a_fault_of_ours_is_not_explained_away() -> None:
    with pytest.raises(ZeroDivisionError), explained():
        raise ZeroDivisionError
