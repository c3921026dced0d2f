"""Compares what was seen with what a situation promises. Whatever is compared is taken from an observation."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from local.demo.account import account_for
from local.demo.situations import AMOUNT, CURRENCY, Trouble

if TYPE_CHECKING:
    from collections.abc import Sequence

    from local.demo.account import Account, Sent
    from local.demo.observation import DeadLetter, Observation
    from local.demo.situations import Order, Read, Situation

Checks = dict[str, tuple[object, object]]  # by name: what is expected, what was seen
CONTENDED = "contended"
UNTOUCHED = "pending"
TICK = timedelta(milliseconds=10)  # by which two clocks of one machine may differ
ERROR = re.compile(r"[A-Z]\w+:.*")  # its class, and a message that may be empty


@dataclass(frozen=True, slots=True)
class Result:
    """How a situation ended, or stands."""

    name: str
    expected: dict[str, object]
    seen: dict[str, object]
    account: Account

    @property
    def is_as_expected(self) -> bool:
        """Whether it ended as it must."""
        return self.expected == self.seen


def judge(situation: Situation, sent: Sequence[Sent], observation: Observation) -> Result:
    """Compare one situation with what was seen."""
    account = account_for(sent, observation)
    checks = _messages(situation, account, observation)
    if situation.order is not None:
        checks |= order_checks(situation.order, observation)
        checks |= _harm(situation, situation.order, sent, observation)
    if situation.read is not None:
        checks |= read_checks(situation.read, observation)
    if situation.invoice is not None:
        told = observation.notices.get(situation.invoice.invoice_id, ())
        checks["notices"] = (list(situation.invoice.told), list(told))
    return Result(
        situation.name,
        {name: expected for name, (expected, _) in checks.items()},
        {name: seen for name, (_, seen) in checks.items()},
        account,
    )


def _messages(situation: Situation, account: Account, observation: Observation) -> Checks:
    """Messages and the records of their jobs."""
    checks: Checks = {
        "sent": (len(situation.bodies), account.sent),
        "completed": (situation.completed, account.completed),
        "duplicates": (situation.duplicates, account.duplicates),
        "dead_letters": (list(situation.dead_letters), [letter.reason for letter in account.dead_letters]),
        "lost": (0, account.lost),
        "jobs": ([asdict(job) for job in situation.jobs], _jobs(situation, account)),
    }
    if situation.dead_letters:
        attempts = sum(job.attempts or 0 for job in situation.jobs)
        checks["dossiers"] = (
            [{"attempts": attempts, "names_error": True, "times_fit": True}] * len(situation.dead_letters),
            [_dossier(letter, observation) for letter in account.dead_letters],
        )
    return checks


def _jobs(situation: Situation, account: Account) -> list[dict[str, object]]:
    """The records of its jobs, without the attempts that are not judged."""
    seen: list[dict[str, object]] = [asdict(job) for job in account.jobs]
    for expected, job in zip(situation.jobs, seen, strict=False):
        if expected.attempts is None:
            job["attempts"] = None
    return seen


def _dossier(letter: DeadLetter, observation: Observation) -> dict[str, object]:
    times_fit = (
        letter.first is not None
        and letter.last is not None
        and observation.begun <= letter.first <= letter.last <= letter.read_at
    )
    names_error = ERROR.fullmatch(letter.error or "") is not None
    return {"attempts": letter.attempts, "names_error": names_error, "times_fit": times_fit}


def read_checks(read: Read, observation: Observation) -> Checks:
    """What a user reads through the cache: the old state before, the new one after."""
    place = (read.user, read.path)
    seen = [observation.first_reads.get(place), observation.reads.get(place)]
    return {"read": ([read.before, read.after], seen)}


def order_checks(order: Order, observation: Observation, *, is_read: bool = False) -> Checks:
    """The order, its charges, and what was cached about it: of an order that nobody touched it stays.

    What its user reads after the end is cached anew (`is_read`), and shows by its version that the old value went.
    """
    seen, charges = observation.orders.get(order.order_id), observation.charges.get(order.intent, ())
    asked = {"amount": AMOUNT, "currency": CURRENCY, "order_id": order.order_id}
    tags = frozenset(order.tags[1:] if is_read else order.tags)
    return {
        "order": (order.ends, seen and seen.status),
        "charges": (order.charges, len(charges)),
        "charged": (
            [asked] * order.charges,
            [{name: value for name, value in asdict(charge).items() if name in asked} for charge in charges],
        ),
        "charge_id": (charges[0].charge_id if charges else None, seen and seen.charge_id),
        "requests": (order.requests, observation.requests.get(order.intent, 0)),
        "invalidated": (
            order.ends != UNTOUCHED,
            tags <= observation.was_cached and tags.isdisjoint(observation.cached),
        ),
    }


def _harm(situation: Situation, order: Order, sent: Sequence[Sent], observation: Observation) -> Checks:
    """What went wrong really did, and what only a product that copes with it leaves behind."""
    checks: Checks = {"provoked": (True, order.intent in observation.provoked)}
    match situation.trouble:
        case Trouble.CONTENTION:
            words = [word for message in sent for word in observation.words.get(message.message_id, ())]
            checks["contended"] = (True, any(word.because == CONTENDED for word in words))
        case Trouble.WORKER_KILLED:
            checks["killed"] = (1, observation.killed)
        case Trouble.REDIS_STOPPED:
            checks["paid_without_redis"] = (True, order.order_id in observation.paid_without_redis)
        case Trouble.NONE:
            pass
    if situation.waits:
        waited = observation.shortest_waits.get(order.intent, 0)
        checks["waited"] = (True, waited >= (situation.waits - TICK).total_seconds())
    if situation.reconciles:
        postings = [posting for posting in observation.postings if posting.order_id == order.order_id]
        jobs = [observation.jobs.get(posting.job) for posting in postings]
        checks["reconciled"] = (["completed"], [job and job.status for job in jobs])
        checks["outbox_sent"] = ([True], [posting.is_sent for posting in postings])
    return checks
