"""A file is imported while its worker's processes are killed between two batches: exact counts, each row once, the report right."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from functions.imports import ROWS_IN_PART
from shared.backends.aws import client
from shared.failpoints import Failpoint
from shared.job_record import SYSTEM, Status, record_id
from tests.aws import CREDENTIALS
from tests.faults.jobs import TWO_AT_A_TIME
from tests.faults.lives import Life
from tests.functions.imports_case import HEADER, message, rows
from tests.modes import chosen
from tests.stack import new_stack

if TYPE_CHECKING:
    from pathlib import Path

    from local.outside.payment_provider import Provider
    from local.stack.valkey import Valkey
    from tests.stack import Stack

ROWS = 10_000
BAD_EVERY = 100
# Of the checkpoints that a process passes: the parent's, and then those of parts, each time in the middle of some.
KILLS = (3, 20)
PATIENCE = 300  # seconds


def test_r5_1_an_import_whose_workers_are_killed_twice_writes_each_row_once(
    aws_endpoint: str, valkey: Valkey, faults_provider: Provider, tmp_path: Path
) -> None:
    stack = new_stack(valkey, faults_provider, visibility=3, worker=TWO_AT_A_TIME)
    stack.database = replace(stack.database, client=client("dynamodb", read_seconds=30))
    text = HEADER + rows(ROWS, bad_every=BAD_EVERY)
    client("s3").put_object(Bucket=stack.settings.buckets["imports"], Key="uploads/spring.csv", Body=text.encode())
    stack.send(message("spring.csv"))
    for turn, after in enumerate(KILLS):
        witness = tmp_path / str(turn)
        killed_after(stack, after, witness)
        assert witness.read_text() == Failpoint.CHECKPOINTED
    unfinished = [view for view in parts(stack) if view["status"]["S"] == "running" and "checkpoint" in view]
    assert unfinished, "nobody was killed in the middle of a part"
    finish(stack)
    view = stack.database.records(stack.runtime.clock).view(record_id(SYSTEM, "import-data", "k"))
    assert view is not None
    assert view.status is Status.COMPLETED
    bad = ROWS // BAD_EVERY
    result = json.loads(view.result or "")
    assert result == {
        "rows": ROWS,
        "written": ROWS - bad,
        "refused": bad,
        "parts": ROWS // ROWS_IN_PART,
        "failed_parts": 0,
        "report": f"reports/{view.names['operation_id']}/{view.split and view.split.name}.jsonl",
    }
    check_rows(stack)
    report = client("s3").get_object(Bucket=stack.settings.buckets["imports"], Key=result["report"])["Body"].read()
    told = [json.loads(line) for line in report.splitlines()]
    assert told == [
        {"line": line, "reason": "price: decimal_parsing"} for line in range(BAD_EVERY + 1, ROWS + 2, BAD_EVERY)
    ]
    assert stack.dead_letters() == []


def killed_after(stack: Stack, checkpoints: int, witness: Path) -> None:
    """Let a process consume, with the relay beside it, until it kills itself."""
    environ = {**CREDENTIALS, "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
    life = Life(
        "consume",
        stack.settings,
        environ,
        Failpoint.CHECKPOINTED,
        after=checkpoints,
        worker="imports",
        mode=chosen(),
        witness=witness,
    )
    process = life.start()
    while process.is_alive():
        with contextlib.suppress(Exception):
            stack.relay_new()
        process.join(0.5)


def finish(stack: Stack) -> None:
    """Consume, relay and count until all is at rest. A moto that copies a table of thousands does not always answer in time."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        polled = None
        with contextlib.suppress(Exception):
            stack.relay_new()
            stack.count_new()
            polled = stack.mapping.poll()
        if polled == 0 and stack.is_at_rest():
            return
    pytest.fail("not at rest")


def parts(stack: Stack) -> list[dict[str, Any]]:
    pages = stack.database.client.get_paginator("scan")
    found = pages.paginate(TableName=stack.settings.jobs_table, ConsistentRead=True)
    return [item for page in found for item in page["Items"] if "part_of" in item]


def check_rows(stack: Stack) -> None:
    table = stack.settings.tables["import-rows"]
    found = stack.database.client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    items = [item for page in found for item in page["Items"]]
    assert {item["version"]["N"] for item in items} == {"1"}
    written = {int(item["line"]["S"]): item["sku"]["S"] for item in items}
    good = [number for number in range(ROWS) if (number + 1) % BAD_EVERY]
    assert written == {number + 2: f"sku-{number}" for number in good}
    assert len(items) == len(good)
