"""The command as people have it: a process of its own, against a stack that CloudFormation made on moto."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ops.exits import Exit
from ops.jobs.job_records import DynamoDBJobs
from shared.backends.aws import client
from shared.clock import SystemClock
from shared.job_record import operation_id
from shared.wire.parsing import read_message
from tests.aws import Database
from tests.conformance.accepting import asked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.intake.acceptance import Acceptance

ROOT = Path(__file__).resolve().parents[2]
TAHAN = (sys.executable, "-m", "ops")
PAYLOAD = json.dumps({"order_id": "order-17", "payment_intent_id": "pi_ok_17"})


@dataclass
class Stack:
    """A stack's name, its queue, and its tables."""

    name: str
    queue: str
    dead_letters: str
    audit: str
    database: Database

    @property
    def named(self) -> tuple[str, str]:
        return "--stack", self.name

    def accept(self) -> Acceptance:
        acceptance = asked()
        clock = SystemClock()
        self.database.acceptances(clock).accept(acceptance, clock.now())
        return acceptance


def ran(
    *words: str | Path, environ: Mapping[str, str] = os.environ, folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """A program that has ended."""
    return subprocess.run(  # noqa: S603 - ours
        words, cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(scope="module")
def stack(aws_endpoint: str) -> Stack:
    assert aws_endpoint == os.environ["AWS_ENDPOINT_URL"]
    database = Database.create()
    name = f"tahan-{uuid.uuid4().hex[:8]}"
    template = {
        "Resources": {
            "Queue": {"Type": "AWS::SQS::Queue"},
            "Dead": {"Type": "AWS::SQS::Queue"},
            "Audit": {"Type": "AWS::Logs::LogGroup"},
        },
        "Outputs": {
            "QueuePayments": {"Value": {"Ref": "Queue"}},
            "DeadLetterQueuePayments": {"Value": {"Ref": "Dead"}},
            "AuditLog": {"Value": {"Ref": "Audit"}},
            "JobsTable": {"Value": database.jobs_table},
        },
    }
    cloudformation = client("cloudformation")
    with contextlib.suppress(cloudformation.exceptions.AlreadyExistsException):  # a busy machine's reply came too late
        cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(template))
    (made,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in made["Outputs"]}
    return Stack(name, outputs["QueuePayments"], outputs["DeadLetterQueuePayments"], outputs["AuditLog"], database)


def test_a_message_is_on_the_queue_when_the_command_has_ended_well(stack: Stack) -> None:
    ended = ran(
        *TAHAN, "enqueue", "capture-payment", "--key", "order-17/capture", "--payload", PAYLOAD, "--json", *stack.named
    )

    assert (ended.returncode, ended.stderr) == (Exit.DONE, "")
    told = json.loads(ended.stdout)
    (received,) = client("sqs").receive_message(QueueUrl=stack.queue)["Messages"]
    assert received["MessageId"] == told["message_id"]
    message = read_message(received["Body"])
    assert (message.idempotency_key, json.loads(message.payload)) == ("order-17/capture", json.loads(PAYLOAD))


def test_an_operation_of_whatever_owner_is_shown(stack: Stack) -> None:
    acceptance = stack.accept()
    ended = ran(*TAHAN, "operation", "show", operation_id(acceptance.record), "--json", *stack.named)
    assert ended.returncode == Exit.DONE, ended.stderr
    shown = json.loads(ended.stdout)
    assert (shown["owner"], shown["status"], shown["job_type"]) == ("user-1", "pending", "note")
    assert shown["accepted_at"] == shown["changed_at"]


def test_a_dead_letter_is_looked_at_replayed_and_told_to_the_audit(stack: Stack) -> None:
    sqs = client("sqs")
    body = json.dumps({"job_type": "capture-payment", "idempotency_key": "dead-17", "payload": json.loads(PAYLOAD)})
    sqs.send_message(QueueUrl=stack.dead_letters, MessageBody=body)

    listed = ran(*TAHAN, "dlq", "list", "--json", *stack.named)
    assert listed.returncode == Exit.DONE, listed.stderr
    (row,) = json.loads(listed.stdout)["letters"]
    assert (row["came_by"], row["job_type"]) == ("never-attempted", "capture-payment")

    words = ("dlq", "replay", row["message_id"], "--no-watch", "--why", "throttled", "--json", *stack.named)
    ended = ran(*TAHAN, *words)
    assert ended.returncode == Exit.DONE, ended.stderr
    assert json.loads(ended.stdout)["replayed"] == 1
    (copy,) = sqs.receive_message(QueueUrl=stack.queue, MessageAttributeNames=["All"])["Messages"]
    assert copy["Body"] == body
    assert sqs.receive_message(QueueUrl=stack.dead_letters).get("Messages") is None
    events = client("logs").filter_log_events(logGroupName=stack.audit)["events"]
    begins, done = (json.loads(event["message"]) for event in events)
    assert (begins["outcome"], begins["why"], done["outcome"]) == ("begins", "throttled", "done")
    assert begins["who"].startswith("arn:aws:")


def test_a_job_is_cancelled_and_told_to_the_audit(stack: Stack) -> None:
    acceptance = stack.accept()
    words = ("job", "cancel", operation_id(acceptance.record), "--why", "asked", "--yes", "--json")
    ended = ran(*TAHAN, *words, *stack.named)
    assert ended.returncode == Exit.DONE, ended.stderr
    assert json.loads(ended.stdout)["status"] == "cancelled"
    shown = ran(*TAHAN, "job", "show", acceptance.record, *stack.named)
    assert "cancelled" in shown.stdout


def test_an_owners_operations_are_listed(stack: Stack) -> None:
    acceptance = stack.accept()
    ended = ran(*TAHAN, "operation", "list", "--owner", acceptance.owner, "--json", *stack.named)
    assert ended.returncode == Exit.DONE, ended.stderr
    assert operation_id(acceptance.record) in {each["operation_id"] for each in json.loads(ended.stdout)["operations"]}


def test_ctrl_c_ends_the_watch_and_nothing_else(stack: Stack) -> None:
    acceptance = stack.accept()
    words = [*TAHAN, "operation", "show", operation_id(acceptance.record), "--watch", *stack.named]
    with subprocess.Popen(  # noqa: S603 - ours
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stderr is not None
        assert "pending" in watching.stderr.readline()
        watching.send_signal(signal.SIGINT)
        out, rest = watching.communicate(timeout=60)
    assert (watching.returncode, out, rest) == (Exit.INTERRUPTED, "", "")


@pytest.mark.parametrize(
    ("environ", "words", "says"),
    [
        ({}, ("--stack", "tahan-nowhere"), "There is no stack 'tahan-nowhere' in eu-central-1"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, (), "There are no AWS credentials"),
        ({}, ("--profile", "nobody"), "There are no AWS credentials that can be used (ProfileNotFound)"),
        ({"AWS_DEFAULT_REGION": ""}, (), "No AWS region is named"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, (), "must still be running"),
    ],
    ids=["no stack", "no credentials", "no profile", "no region", "no answer"],
)
def test_what_keeps_us_from_aws_is_said_in_a_sentence_with_what_to_do(
    stack: Stack, environ: dict[str, str], words: tuple[str, ...], says: str
) -> None:
    changed = {name: value for name, value in {**os.environ, **environ}.items() if value}
    ended = ran(*TAHAN, "operation", "show", "a" * 64, *stack.named, *words, environ=changed)
    assert (ended.returncode, ended.stdout) == (Exit.NOT_DONE, "")
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_item_of_the_jobs_table_that_is_no_job_is_no_operation(stack: Stack) -> None:
    jobs = DynamoDBJobs(stack.database.client, stack.database.jobs_table, SystemClock())
    stack.database.client.put_item(TableName=jobs.table, Item={"id": {"S": "intake/note"}, "until": {"S": "x"}})
    assert jobs.look("intake/note") is None
    assert jobs.look("f" * 64) is None


def test_i7_a_record_that_has_expired_is_not_there(stack: Stack) -> None:
    acceptance = stack.accept()
    jobs = DynamoDBJobs(stack.database.client, stack.database.jobs_table, SystemClock())
    assert jobs.look(acceptance.record) is not None
    stack.database.client.update_item(
        TableName=jobs.table,
        Key={"id": {"S": acceptance.record}},
        UpdateExpression="SET expiration = :past",
        ExpressionAttributeValues={":past": {"N": "1767225600"}},
    )
    assert jobs.look(acceptance.record) is None


def test_the_launcher_makes_the_environment_and_hands_every_word_on(tmp_path: Path) -> None:
    house = tmp_path / "a house"
    (house / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "tahan", house / "tahan")
    (house / "Makefile").write_text(".venv/.made:\n\t@echo made\n\t@touch $@\n")
    python = house / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\necho "$PYTHONPATH|$*"\nexit 3\n')
    python.chmod(0o755)
    link = tmp_path / "linked"
    link.symlink_to(house / "tahan")

    ended = ran(link, "--json", "two words", folder=tmp_path)

    assert (ended.returncode, ended.stderr) == (3, "made\n")
    assert ended.stdout == f"{house}|-P -m ops --json two words\n"
