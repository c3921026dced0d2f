"""The outbox under fire, with real processes: nothing is sent without its commit, everything that is committed is sent.

The relay is killed at each of its steps, over and over; the stream keeps a third from it altogether; the sweeper is killed, too.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from shared.claim import Claim
from shared.commit import Commit
from shared.errors import ClaimLost
from shared.failpoints import Failpoint
from shared.job_record import SYSTEM, Hold, Status, record_id
from shared.outbox import Posting
from tests.aws import CREDENTIALS
from tests.faults.lives import Life
from tests.modes import chosen
from tests.stack import new_stack

if TYPE_CHECKING:
    from local.outside.payment_provider import Provider
    from local.stack.valkey import Valkey
    from tests.stack import Stack

JOBS = 15
STEPS = (Failpoint.RELAY_RECEIVED, Failpoint.RELAY_SENT, Failpoint.RELAY_MARKED)
PATIENCE = 120.0


def commit(stack: Stack, number: int) -> tuple[set[str], set[str]]:
    """Two attempts of one job commit a message each, and only the one that holds the job does; what was and what was not."""
    records, now = stack.database.records(stack.runtime.clock), stack.runtime.clock.now()
    record = record_id(SYSTEM, "note", f"k{number}")
    claim = Claim(record, SYSTEM, "note", f"k{number}", "1:a", "{}", 1, f"t{number}", now, max_attempts=3, death=0)
    records.claim(claim, now)
    written, refused = set(), set()
    for token in (f"zombie{number}", f"t{number}"):
        # The stream is off for each third: those are the sweeper's alone.
        name = f"{'unstreamed-' if number % 3 == 0 else ''}{token}"
        commits = Commit(Status.COMPLETED, postings=(Posting(name, "payments", json.dumps({"from": token})),))
        try:
            records.commit(Hold(record, token), commits, now)
        except ClaimLost:
            refused.add(token)
        else:
            written.add(token)
    return written, refused


def received(stack: Stack) -> set[str]:
    """Who sent what is on the queue."""
    found = set()
    url = stack.settings.queues["payments"]
    while messages := stack.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            found.add(json.loads(message["Body"])["from"])
            stack.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


@pytest.mark.timeout(300)
def test_i9_i10_everything_that_is_committed_is_sent_and_nothing_else_whoever_is_killed(
    aws_endpoint: str, valkey: Valkey, faults_provider: Provider, tmp_path: Any
) -> None:
    stack = new_stack(valkey, faults_provider)
    environ = {**CREDENTIALS, "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
    committed: set[str] = set()
    refused: set[str] = set()
    for number in range(JOBS):
        written, not_written = commit(stack, number)
        committed |= written
        refused |= not_written
    assert (len(committed), len(refused)) == (JOBS, JOBS)
    sent: set[str] = set()
    died: list[str] = []
    deadline = time.monotonic() + PATIENCE
    turn = 0
    while sent != committed and time.monotonic() < deadline:
        witnesses = []
        lives = []
        for program in ("relay_on", "sweep_on"):
            witness = tmp_path / f"{program}-{turn}"
            witnesses.append(witness)
            step = STEPS[turn % len(STEPS)]
            life = Life(
                program,
                stack.settings,
                environ,
                step,
                mode=chosen(),
                seconds=3.0,
                witness=witness,
                after=turn // len(STEPS),
            )
            lives.append(life.start())
        for process in lives:
            process.join(60)
            process.kill()
        died += [witness.read_text() for witness in witnesses if witness.exists()]
        sent |= received(stack)
        turn += 1
    assert sent == committed
    assert not refused & sent
    assert set(died) == set(STEPS)
    items = stack.database.client.scan(TableName=stack.settings.outbox_table, ConsistentRead=True)["Items"]
    assert len(items) == JOBS  # what was refused left nothing there
