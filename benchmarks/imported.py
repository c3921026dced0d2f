"""What imports cost a process: `python -m benchmarks.imported TASK`, fresh each time; prints JSON.

A task is the name of a module to import, `peer` (what the hand-wired function imports), `job-ours` or `job-peer` (the same,
and then the first job, on the stores that the environment names). Counted is what is in the process besides the bare
interpreter: modules, and the bytes of their bytecode and shared objects.
"""

import sys

BARE = frozenset(sys.modules)  # before anything is imported that others import, too

import importlib  # noqa: E402 - see above
import json  # noqa: E402
import os  # noqa: E402
import time  # noqa: E402

PEER = (
    "boto3",
    "aws_lambda_powertools.utilities.batch",
    "aws_lambda_powertools.utilities.idempotency",
    "aws_lambda_powertools.logging",
    "aws_lambda_powertools.metrics",
    "pydantic",
    "redis",
)
USER_JOB = (
    '{"job_type": "refresh-user-cache", "version": 1, "idempotency_key": "k1",'
    ' "payload": {"user_id": "u1", "version": 1}}'
)
NOTE_JOB = '{"job_type": "note", "idempotency_key": "k1", "payload": {"thing": "a"}}'


class Context:
    """A Lambda context."""

    aws_request_id = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        """A minute."""
        return 60_000


def event(body: str) -> dict[str, object]:
    """A batch of one message, as Lambda gives it."""
    record = {
        "messageId": "m1",
        "receiptHandle": "r1",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1767225600000"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:000000000000:users",
    }
    return {"Records": [record]}


def first_job_of_ours() -> object:
    """One job through a function as it is deployed."""
    return importlib.import_module("functions.users").handler(event(USER_JOB), Context())


def first_job_of_peer() -> object:
    """One job through the hand-wired function, with the clients that it makes."""
    for name in PEER:
        importlib.import_module(name)
    wired = importlib.import_module("benchmarks.peers.hand_wired")
    dynamodb = sys.modules["boto3"].client("dynamodb")
    redis = sys.modules["redis"].Redis(port=int(os.environ["BENCH_VALKEY_PORT"]))
    return wired.on_stores(dynamodb, redis, "jobs", "things").handler(event(NOTE_JOB), Context())


def loaded_bytes(names: set[str]) -> int:
    """Bytes of the files that these modules were loaded from: bytecode, or the shared object."""
    found = 0
    for name in names:
        module = sys.modules[name]
        spec = getattr(module, "__spec__", None)
        path = getattr(spec, "cached", None) or getattr(spec, "origin", None)
        if isinstance(path, str) and os.path.exists(path):  # noqa: PTH110 - pathlib would be among what is counted
            found += os.stat(path).st_size  # noqa: PTH116 - as above
    return found


def main(task: str) -> None:
    """Do it and tell what it took."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    begun, spent = time.perf_counter(), time.process_time()
    answer: object = None
    if task == "job-ours":
        answer = first_job_of_ours()
    elif task == "job-peer":
        answer = first_job_of_peer()
    else:
        for name in PEER if task == "peer" else (task,):
            importlib.import_module(name)
    wall, cpu = time.perf_counter() - begun, time.process_time() - spent
    new = sys.modules.keys() - BARE - {"benchmarks", "benchmarks.imported"}
    told = {"modules": len(new), "bytes": loaded_bytes(set(new)), "wall": wall, "cpu": cpu, "answer": answer}
    out.write(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
