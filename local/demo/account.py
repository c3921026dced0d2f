"""Finds each sent message in what was seen: what a worker said of it, what its job's record says, or the dead-letter queue."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from local.demo.observation import DeadLetter, JobSeen, Observation

ENDED = frozenset({"completed", "failed"})
DID_IT = frozenset({"succeeded", "unknown"})  # this delivery brought the job to its end, or to its reconciling job
FOUND_IT_DONE = "duplicates"


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that SQS has taken, under the id that it gave."""

    message_id: str
    body: str


@dataclass(frozen=True, slots=True)
class Account:
    """Where the messages of a situation have got to; `jobs` are the records of their jobs.

    A message is a dead letter if the dead-letter queue has it, completed if a worker said that it did the job, a duplicate
    if a worker said that it found the job done; each only if the job's record has ended. All others are unfinished as
    long as the queue holds messages, and lost when it is empty.
    """

    sent: int = 0
    completed: int = 0
    duplicates: int = 0
    dead_letters: tuple[DeadLetter, ...] = ()
    unfinished: int = 0
    lost: int = 0
    jobs: tuple[JobSeen, ...] = ()


def account_for(sent: Sequence[Sent], observation: Observation) -> Account:
    """Account for each message that was sent."""
    letters = _matching(Counter(message.body for message in sent), observation.dead_letters)
    by_job: dict[tuple[str, str], list[Sent]] = defaultdict(list)
    for message in sent:
        if (job := job_of(message.body)) is not None:
            by_job[job].append(message)
    completed = duplicates = 0
    for job, messages in by_job.items():
        record = observation.jobs.get(job)
        if record is not None and record.status in ENDED:
            did_it, found_it_done = _told(messages, observation)
            completed += did_it
            duplicates += found_it_done
    missing = max(0, len(sent) - len(letters) - completed - duplicates)
    return Account(
        sent=len(sent),
        completed=completed,
        duplicates=duplicates,
        dead_letters=letters,
        unfinished=0 if observation.is_at_rest else missing,
        lost=missing if observation.is_at_rest else 0,
        jobs=tuple(observation.jobs[job] for job in by_job if job in observation.jobs),
    )


def job_of(body: str) -> tuple[str, str] | None:
    """Job type and idempotency key in a message's body; None if they cannot be read."""
    try:
        message = json.loads(body)
        return str(message["job_type"]), str(message["idempotency_key"])
    except (ValueError, KeyError, TypeError):
        return None


def _told(messages: Iterable[Sent], observation: Observation) -> tuple[int, int]:
    """How many messages of a job did it, and how many found it done, by the words about them.

    A message whose commit nobody told of (its worker was killed, or Redis was away for its invalidation) comes back and
    finds its own job done: where no message did it, the first that found it done is the one.
    """
    did_it = found_it_done = 0
    for message in messages:
        results = [word.result for word in observation.words.get(message.message_id, ())]
        if not DID_IT.isdisjoint(results):
            did_it += 1
        elif results and results[-1] == FOUND_IT_DONE:
            found_it_done += 1
    return (did_it, found_it_done) if did_it or not found_it_done else (1, found_it_done - 1)


def _matching(bodies: Counter[str], letters: Iterable[DeadLetter]) -> tuple[DeadLetter, ...]:
    left, found = bodies.copy(), []
    for letter in letters:
        if left[letter.body] > 0:
            left[letter.body] -= 1
            found.append(letter)
    return tuple(found)
