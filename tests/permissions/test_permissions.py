"""Every call that a function was seen to make is granted, and what is granted was seen, or has its reason."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from functions.registry import WORKERS
from functions.users import USERS
from infra.assembly import synthesise, template_path
from infra.stage.settings import ROOT
from local.stack.standin import RECORDER
from shared.naming import camel
from shared.settings import Settings
from tests.aws import Database
from tests.infra.walk import Walk
from tests.permissions.authority import acting
from tests.permissions.calls import needed
from tests.permissions.granted import granted, missing
from tests.permissions.kept import PAGE, UNSEEN, local_template, page, reason, recorded
from tests.unplayed import UNPLAYED

if TYPE_CHECKING:
    from pathlib import Path

    from tests.permissions.granted import Matrix


@pytest.fixture(scope="module")
def template() -> Walk:
    return local_template()


@pytest.fixture(scope="module")
def allowed(template: Walk) -> Matrix:
    return granted(template)


def test_every_call_that_was_seen_is_granted(allowed: Matrix) -> None:
    assert missing(recorded(), allowed) == []


def test_what_is_granted_was_seen_or_has_a_reason(allowed: Matrix) -> None:
    unseen = missing(allowed, recorded())
    assert [each for each in unseen if reason(*each) is None] == []


def test_every_reason_is_needed(allowed: Matrix) -> None:
    used = {reason(*each) for each in missing(allowed, recorded())}
    assert set(UNSEEN) - used == set()


def test_every_worker_was_seen() -> None:
    workers = {f"Worker{camel(worker.name)}ConsumerFunction" for worker in WORKERS if worker.name not in UNPLAYED}
    others = {"FrontDoorFunction", "OutboxRelayFunction", "OutboxSweeperFunction", "PartCounterFunction"}
    assert workers | others == set(recorded())


def test_the_other_stages_functions_have_the_same_roles(allowed: Matrix) -> None:
    theirs = granted(Walk("dev", json.loads(template_path(synthesise("dev"), "dev").read_text(encoding="utf-8"))))
    assert {name: allowed[name] for name in theirs} == theirs


def test_the_page_shows_the_matrix(allowed: Matrix) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(allowed, recorded()), "run python -m tests.permissions"
    assert "NO REASON" not in PAGE.read_text(encoding="utf-8")


def test_every_test_that_a_reason_names_is_there() -> None:
    for text in UNSEEN.values():
        for name in re.findall(r"[\w/]*test_\w+\.py", text):
            assert (ROOT / name).exists() or (ROOT / "tests" / "functions" / name).exists(), name


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            {
                "service": "dynamodb",
                "operation": "TransactWriteItems",
                "parts": [["Update", "a"], ["ConditionCheck", "b"]],
            },
            [("dynamodb:UpdateItem", "a"), ("dynamodb:ConditionCheckItem", "b")],
        ),
        ({"service": "dynamodb", "operation": "BatchGetItem", "tables": ["a"]}, [("dynamodb:BatchGetItem", "a")]),
        ({"service": "dynamodb", "operation": "Query", "TableName": "a"}, [("dynamodb:Query", "a")]),
        (
            {"service": "sqs", "operation": "SendMessageBatch", "QueueUrl": "https://sqs/1/q"},
            [("sqs:SendMessage", "q")],
        ),
        ({"service": "s3", "operation": "UploadPart", "Bucket": "b"}, [("s3:PutObject", "b")]),
        (
            {"service": "lambda", "operation": "UpdateEventSourceMapping", "UUID": "u"},
            [("lambda:UpdateEventSourceMapping", "u")],
        ),
    ],
)
def test_a_call_needs_the_actions_that_iam_checks(call: dict[str, object], expected: list[tuple[str, str]]) -> None:
    assert list(needed(call)) == expected


def test_a_service_that_nobody_has_used_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sns:Publish: say in tests/permissions/calls\.py"):
        list(needed({"service": "sns", "operation": "Publish"}))


def test_a_call_that_a_role_does_not_grant_is_told(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws_endpoint)
    database = Database.create(USERS)
    settings = Settings(jobs_table=database.jobs_table, outbox_table=database.outbox_table, tables=database.tables)
    key = {"user_id": {"S": "u"}}
    with acting("WorkerUsersConsumerFunction", settings):
        database.client.get_item(TableName=database.tables["users"], Key=key)
    refused = "WorkerUsersConsumerFunction may not dynamodb:PutItem FoundationTablesItemsUsers"
    with pytest.raises(AssertionError, match=refused), acting("WorkerUsersConsumerFunction", settings):
        database.client.put_item(TableName=database.tables["users"], Item=key)
    database.client.put_item(TableName=database.tables["users"], Item=key)  # nobody looks any more


def test_the_recorder_writes_names_and_no_values(tmp_path: Path, aws_endpoint: str) -> None:
    file = tmp_path / "calls.jsonl"
    code = (
        "import boto3; sqs = boto3.client('sqs');"
        "url = sqs.create_queue(QueueName='recorded')['QueueUrl'];"
        "sqs.send_message(QueueUrl=url, MessageBody='a secret')"
    )
    recording = {"PYTHONPATH": str(RECORDER), "RECORDED_CALLS": str(file), "AWS_LAMBDA_FUNCTION_NAME": "f"}
    environ = {**os.environ, "AWS_ENDPOINT_URL": aws_endpoint, **recording}
    subprocess.run([sys.executable, "-c", code], env=environ, check=True, timeout=60)  # noqa: S603 - ours
    text = file.read_text(encoding="utf-8")
    assert [line.count('"function": "f"') for line in text.splitlines()] == [1, 1]
    assert '"SendMessage"' in text
    assert "a secret" not in text
