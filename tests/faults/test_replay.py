"""A replay of dead letters that is killed at each of its steps, in a process of its own; then said once more."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from shared.failpoints import Failpoint
from shared.job_record import SYSTEM, Status, record_id
from shared.outcome import Failure
from tests.aws import CREDENTIALS
from tests.faults.lives import Life, desk_of
from tests.modes import chosen
from tests.stack import new_stack

if TYPE_CHECKING:
    from pathlib import Path

    from local.outside.payment_provider import Provider
    from local.stack.valkey import Valkey
    from tests.stack import Stack

LETTERS = 60
HIDDEN = 4.0  # seconds for which a dead operator's letters are hidden
STEPS = (Failpoint.LETTERS_TAKEN, Failpoint.REOPENED, Failpoint.COPIES_SENT, Failpoint.LETTERS_DELETED)


def names() -> list[str]:
    return [f"dead-{number}" for number in range(LETTERS)]


def there(stack: Stack) -> set[str]:
    """The keys of all messages on the queue and its dead-letter queue."""
    found = set()
    for url in (stack.settings.queues["payments"], stack.settings.dead_letter_queues["payments"]):
        messages: list[dict[str, str]] = []
        while more := stack.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60).get(
            "Messages"
        ):
            messages += more
        found |= {json.loads(message["Body"])["idempotency_key"] for message in messages}
        for message in messages:
            stack.sqs.change_message_visibility(
                QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
            )
    return found


def test_dlq_04_a_replay_killed_at_each_of_its_steps_loses_nothing_and_charges_each_order_once(
    valkey: Valkey, faults_provider: Provider, tmp_path: Path
) -> None:
    stack = new_stack(valkey, faults_provider)
    for name in names():
        payload = {"order_id": name, "payment_intent_id": f"pi_ok_{name}"}
        stack.send(json.dumps({"job_type": "capture-payment", "idempotency_key": name, "payload": payload}))
    stack.run()  # there are no such orders
    assert len(there(stack)) == LETTERS
    for name in names():  # the repair
        stack.seed(order_id=name, payment_intent_id=f"pi_ok_{name}")

    environ = {**CREDENTIALS, "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
    for point in STEPS:
        witness = tmp_path / point
        life = Life(
            "replay",
            stack.settings,
            environ,
            point,
            mode=chosen(),
            arguments={"worker": "payments", "hidden": HIDDEN},
            witness=witness,
        )
        process = life.start()
        process.join(90)
        process.kill()
        assert witness.read_text() == point
        time.sleep(HIDDEN)
        assert there(stack) == set(names())

    report = desk_of(stack.settings, "payments", HIDDEN).run()
    assert report.left == []
    stack.run()
    records = stack.database.records(stack.runtime.clock)
    for name in names():
        view = records.view(record_id(SYSTEM, "capture-payment", name))
        assert view is not None
        assert (view.status, view.attempts) == (Status.COMPLETED, 1)
        assert [type(failure) for failure in view.failures] == [Failure]
        assert len(faults_provider.ledger.charges_of(f"pi_ok_{name}")) == 1
    assert stack.dead_letters() == []
