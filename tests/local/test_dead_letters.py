"""LOC-02: the desk works on the stand-in of the local stage, which moves dead letters late and knows no move tasks."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from local.processes.children import Children
from local.stack.standin import start_standin
from local.stack.valkey import Valkey
from ops.exits import Exit
from shared.backends.aws import client
from tests.aws import CREDENTIALS, Database

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"
TENANT = {"DataType": "String", "StringValue": "t1"}
STACK = "tahan-standin"


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A stack on the stand-in: a queue that gives up after two receives, its dead-letter queue, the audit."""
    with Children() as children:
        valkey = Valkey(children, tmp_path / "valkey")
        valkey.start()
        server = start_standin(children, tmp_path / "standin", valkey, lambda _: None)
        for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": server.endpoint}.items():
            monkeypatch.setenv(name, value)
        redrive = {"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}, "maxReceiveCount": 2}
        template = {
            "Resources": {
                "Dead": {"Type": "AWS::SQS::Queue"},
                "Queue": {
                    "Type": "AWS::SQS::Queue",
                    "Properties": {"VisibilityTimeout": 0, "RedrivePolicy": redrive},
                },
                "Audit": {"Type": "AWS::Logs::LogGroup"},
            },
            "Outputs": {
                "QueuePayments": {"Value": {"Ref": "Queue"}},
                "DeadLetterQueuePayments": {"Value": {"Ref": "Dead"}},
                "AuditLog": {"Value": {"Ref": "Audit"}},
                "JobsTable": {"Value": Database.create().jobs_table},
            },
        }
        cloudformation = client("cloudformation")
        # The server's first call of a service can outlast a reply's timeout: then the client's own retry finds it made.
        with contextlib.suppress(cloudformation.exceptions.AlreadyExistsException):
            cloudformation.create_stack(StackName=STACK, TemplateBody=json.dumps(template))
        cloudformation.get_waiter("stack_create_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1})
        (made,) = cloudformation.describe_stacks(StackName=STACK)["Stacks"]
        yield {output["OutputKey"]: output["OutputValue"] for output in made["Outputs"]}


def tahan(*words: str) -> dict[str, Any]:
    command = (sys.executable, "-m", "ops", *words, "--json", "--stack", STACK)
    ended = subprocess.run(  # noqa: S603 - ours
        command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == Exit.DONE, ended.stderr
    shown: dict[str, Any] = json.loads(ended.stdout)
    return shown


def test_loc_02_a_poison_message_is_shown_replayed_with_attributes_and_trace_and_discarded_on_the_stand_in(
    outputs: dict[str, str], tmp_path: Path
) -> None:
    sqs, queue = client("sqs"), outputs["QueuePayments"]
    payload = {"order_id": "o", "payment_intent_id": "pi"}
    body = json.dumps({"job_type": "capture-payment", "idempotency_key": "k", "payload": payload})
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": TRACE}}

    def poison() -> None:
        """Receive until it is moved: one receive after the last that counts."""
        for _ in range(3):
            sqs.receive_message(QueueUrl=queue)

    sqs.send_message(
        QueueUrl=queue, MessageBody=body, MessageAttributes={"tenant": TENANT}, MessageSystemAttributes=trace
    )
    poison()
    (letter,) = tahan("dlq", "list")["letters"]
    assert (letter["came_by"], letter["deaths"]) == ("never-attempted", 0)

    assert tahan("dlq", "replay", "--all", "--no-watch", "--why", "tried")["replayed"] == 1
    (copy,) = sqs.receive_message(QueueUrl=queue, MessageAttributeNames=["All"], AttributeNames=["All"])["Messages"]
    assert (copy["Body"], copy["Attributes"]["AWSTraceHeader"]) == (body, TRACE)
    assert copy["MessageAttributes"]["tenant"]["StringValue"] == "t1"

    poison()
    (again,) = tahan("dlq", "list")["letters"]
    assert again["deaths"] == 1
    archive = tmp_path / "thrown.jsonl"
    words = ("--all", "--why", "tried", "--archive", str(archive), "--yes")
    assert tahan("dlq", "discard", *words)["discarded"] == 1
    assert json.loads(archive.read_text())["body"] == body
    assert tahan("dlq", "list")["letters"] == []
    events = client("logs").filter_log_events(logGroupName=outputs["AuditLog"])["events"]
    told = [json.loads(event["message"]) for event in events]
    assert sorted((line["what"], line["outcome"]) for line in told) == [
        ("dlq discard", "begins"),
        ("dlq discard", "done"),
        ("dlq replay", "begins"),
        ("dlq replay", "done"),
    ]
