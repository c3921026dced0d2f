"""Compares what became of requests over HTTP with what a situation promises; orders and charges are judged as all others are."""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING

from local.demo.account import ENDED, Account
from local.demo.client import first_operation
from local.demo.verdict import Result, order_checks, read_checks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from local.demo.client import Answer
    from local.demo.observation import Observation
    from local.demo.over_http import Asked
    from local.demo.verdict import Checks

OVER = ENDED | {"cancelled"}  # by its owner, before it began


def judge_asked(asked: Asked, answers: Sequence[Answer], observation: Observation) -> Result:
    """Compare one situation with what was seen."""
    account = account_for_answers(asked, answers, observation)
    told = {answer.operation for answer in answers if answer.status == HTTPStatus.ACCEPTED}
    operation = first_operation(answers)
    checks: Checks = {
        "answers": (list(asked.answers), [told_in_short(answer) for answer in answers]),
        "operations": (int(asked.ends is not None), len(told)),
        "operation": (asked.ends, observation.operations.get(operation or "")),
        "completed": (int(asked.ends is not None), account.completed),
        "duplicates": (asked.duplicates, account.duplicates),
        "lost": (0, account.lost),
        "jobs": ([asdict(job) for job in asked.jobs], [asdict(job) for job in account.jobs]),
    }
    if asked.order is not None:
        checks |= order_checks(asked.order, observation, is_read=asked.read is not None)
    if asked.read is not None:
        checks |= read_checks(asked.read, observation)
    job = job_of_request(asked)
    if asked.waits:
        times = observation.times.get(job)
        checks["waited"] = (True, times is not None and times.ended_at >= times.run_at)
    if asked.without_relay:
        checks["done_without_relay"] = (True, job in observation.done_without_relay)
    return Result(
        asked.name,
        {name: expected for name, (expected, _) in checks.items()},
        {name: seen for name, (_, seen) in checks.items()},
        account,
    )


def account_for_answers(asked: Asked, answers: Sequence[Answer], observation: Observation) -> Account:
    """Where the accepted requests have got to: one is the job, the others were told that they repeat it."""
    accepted = [answer for answer in answers if answer.status == HTTPStatus.ACCEPTED]
    record = observation.jobs.get(job_of_request(asked))
    duplicates = sum(answer.is_replay for answer in accepted)
    completed = len(accepted) - duplicates if record is not None and record.status in OVER else 0
    missing = len(accepted) - duplicates - completed
    return Account(
        sent=len(accepted),
        completed=completed,
        duplicates=duplicates,
        unfinished=0 if observation.is_at_rest else missing,
        lost=missing if observation.is_at_rest else 0,
        jobs=() if record is None else (record,),
    )


def job_of_request(asked: Asked) -> tuple[str, str]:
    """Job type and idempotency key of its job."""
    first = asked.requests[0]
    return first.path.rpartition("/")[2], first.key or ""


def told_in_short(answer: Answer) -> str:
    """Status, and the code of a refusal."""
    return str(answer.status) if answer.code is None else f"{answer.status} {answer.code}"
