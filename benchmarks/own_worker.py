"""The product's consumer behind a poller, as a process: `python -m benchmarks.own_worker LOAD`.

On AWS the poller is Lambda's. Here its work is in the same process, and is counted as ours; or batches are handed over.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from benchmarks import load, product
from local.invoking.event_source_mapping import record_of
from shared.backends.aws import client
from tests.world import Context

if TYPE_CHECKING:
    from benchmarks.load import Load, Meter

MOST = 10  # messages in one call of SQS


def work(todo: Load, meter: Meter) -> None:
    """Do the jobs, from a queue or handed over."""
    sqs = client("sqs")
    url = sqs.create_queue(QueueName=os.environ["BENCH_QUEUE"], Attributes={"VisibilityTimeout": "600"})["QueueUrl"]
    told = product.settings(int(os.environ["BENCH_VALKEY_PORT"]), queue=url, dead=url)
    consumer = product.on_stores(told)
    bodies = [product.note_body(name, wait=todo.wait, job_type="pause") for name in todo.names]
    batches = [bodies[start : start + MOST] for start in range(0, len(bodies), MOST)]
    if not todo.polled:
        for event in [product.batch(texts) for texts in batches]:
            meter.ended(len(event["Records"]) - len(consumer.handle(event, Context())["batchItemFailures"]))
        return
    for texts in batches:
        entries = [{"Id": str(place), "MessageBody": text} for place, text in enumerate(texts)]
        sqs.send_message_batch(QueueUrl=url, Entries=entries)
    while not meter.is_over:
        meter.ended(_poll(sqs, url, consumer.handle))


def _poll(sqs: Any, url: str, handle: Any) -> int:  # noqa: ANN401 - boto3 builds the class
    """One batch, as Lambda's mapping does it; give how many messages were done."""
    asked = {"MessageAttributeNames": ["All"], "AttributeNames": ["All"]}
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=MOST, **asked).get("Messages", [])
    if not messages:
        return 0
    answer = handle({"Records": [record_of(message, url) for message in messages]}, Context())
    failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
    done = [message for message in messages if message["MessageId"] not in failed]
    entries = [{"Id": str(place), "ReceiptHandle": each["ReceiptHandle"]} for place, each in enumerate(done)]
    sqs.delete_message_batch(QueueUrl=url, Entries=entries)
    return len(done)


if __name__ == "__main__":
    load.run(work)
