"""What is seen when every situation ends as it must: the tests change one thing of it at a time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from local.demo.account import Sent, job_of
from local.demo.client import Answer
from local.demo.observation import ChargeSeen, DeadLetter, JobSeen, Observation, OrderSeen, PostingSeen, Times, Word
from local.demo.over_http import ASKED, Asked
from local.demo.over_http_verdict import job_of_request, judge_asked
from local.demo.report import Report, report
from local.demo.situations import AMOUNT, CURRENCY, SITUATIONS, Situation, Trouble
from local.demo.verdict import judge

if TYPE_CHECKING:
    from collections.abc import Mapping

Key = TypeVar("Key")
Value = TypeVar("Value")

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
FAILED = BEGUN + timedelta(seconds=1)
READ = BEGUN + timedelta(seconds=2)
SENT = {
    situation.name: tuple(Sent(f"{situation.name}/{place}", body) for place, body in enumerate(situation.bodies))
    for situation in SITUATIONS
}
RECONCILING = ("reconcile-payment", "reconcile/1")
OPERATIONS = {asked.name: f"op_{asked.name}" for asked in ASKED}


def answers_of(asked: Asked) -> tuple[Answer, ...]:
    """What its requests are answered when all is as it must be."""
    answers, accepted = [], 0
    for told in asked.answers:
        status, _, code = told.partition(" ")
        body = {"code": code} if code else {"operation_id": OPERATIONS[asked.name]} if status in {"200", "202"} else {}
        answers.append(Answer(int(status), body, is_replay=status == "202" and accepted > 0))
        accepted += status == "202"
    return tuple(answers)


ANSWERS = {asked.name: answers_of(asked) for asked in ASKED}


def words_of(situation: Situation) -> dict[str, tuple[Word, ...]]:
    """What workers say of its messages: the first ones do the jobs, the others find them done."""
    if situation.dead_letters:
        return {message.message_id: (Word("dead_lettered"),) for message in SENT[situation.name]}
    first: tuple[Word, ...] = (Word("succeeded"),)
    further: tuple[Word, ...] = (Word("duplicates"),)
    words = [first] * situation.completed + [further] * situation.duplicates
    if situation.trouble is Trouble.CONTENTION:
        words[-1] = (Word("postponed", "contended"), *words[-1])
    if situation.trouble is Trouble.REDIS_STOPPED:
        words = [(Word("postponed", "invalidation-failed"), Word("duplicates"))]
    if situation.reconciles:
        words = [(Word("unknown"),)]
    return {message.message_id: said for message, said in zip(SENT[situation.name], words, strict=True)}


def ideal() -> Observation:
    """All as it must be."""
    orders = [situation.order for situation in (*SITUATIONS, *ASKED) if situation.order]
    charges = {
        order.intent: (ChargeSeen(f"ch_{place}", AMOUNT, CURRENCY, order.order_id),)
        for place, order in enumerate(orders)
        if order.charges
    }
    letters = tuple(
        DeadLetter(
            message.body, READ, reason, sum(job.attempts or 0 for job in situation.jobs), "Malformed: x", FAILED, FAILED
        )
        for situation in SITUATIONS
        for message, reason in zip(SENT[situation.name], situation.dead_letters, strict=False)
    )
    jobs: dict[tuple[str, str], JobSeen] = {}
    for situation in SITUATIONS:
        keys = dict.fromkeys(filter(None, (job_of(message.body) for message in SENT[situation.name])))
        jobs |= {
            key: JobSeen(end.status, 1 if end.attempts is None else end.attempts)
            for key, end in zip(keys, situation.jobs, strict=False)
        }
    jobs |= {
        job_of_request(asked): JobSeen(end.status, 1 if end.attempts is None else end.attempts)
        for asked in ASKED
        for end in asked.jobs
    }
    tags = frozenset(tag for order in orders for tag in order.tags)
    untouched = frozenset(tag for order in orders if order.ends == "pending" for tag in order.tags)
    reads = [each.read for each in (*SITUATIONS, *ASKED) if each.read]
    return Observation(
        begun=BEGUN,
        dead=len(letters),
        dead_letters=letters,
        orders={
            order.order_id: OrderSeen(
                order.ends, charges[order.intent][0].charge_id if order.intent in charges else None
            )
            for order in orders
        },
        jobs={**jobs, RECONCILING: JobSeen("completed", 1)},
        postings=(PostingSeen(RECONCILING, "order-lost", is_sent=True),),
        charges=charges,
        notices={each.invoice.invoice_id: each.invoice.told for each in SITUATIONS if each.invoice},
        requests={order.intent: order.requests for order in orders},
        shortest_waits={"pi_429_hurry": 3.2},
        provoked=frozenset(order.intent for order in orders),
        killed=1,
        was_cached=tags,
        cached=untouched,
        paid_without_redis=frozenset({"order-no-redis"}),
        times={job_of_request(asked): Times(BEGUN, BEGUN) for asked in ASKED if asked.waits},
        operations={OPERATIONS[asked.name]: asked.ends for asked in ASKED if asked.ends},
        first_reads={(read.user, read.path): read.before for read in reads},
        reads={(read.user, read.path): read.after for read in reads},
        done_without_relay=frozenset(job_of_request(asked) for asked in ASKED if asked.without_relay),
        words={name: words for situation in SITUATIONS for name, words in words_of(situation).items()},
    )


def end_of(
    observation: Observation,
    sent: Mapping[str, tuple[Sent, ...]] = SENT,
    answers: Mapping[str, tuple[Answer, ...]] = ANSWERS,
) -> Report:
    """The report about what was seen."""
    results = [judge(situation, sent.get(situation.name, ()), observation) for situation in SITUATIONS]
    results += [judge_asked(asked, answers.get(asked.name, ()), observation) for asked in ASKED]
    return report(results, observation, 1.0)


def wrong(observation: Observation, answers: Mapping[str, tuple[Answer, ...]] = ANSWERS) -> dict[str, list[str]]:
    """Which checks of which situations fail."""
    return {
        result.name: [name for name in result.expected if result.expected[name] != result.seen[name]]
        for result in end_of(observation, answers=answers).results
        if not result.is_as_expected
    }


def put(known: Mapping[Key, Value], key: Key, value: Value) -> dict[Key, Value]:
    """The mapping with another value."""
    return {**known, key: value}


def with_words(**words: tuple[Word, ...]) -> Observation:
    """Other words about the messages of a situation; `new_order_0` is the first message of new-order."""
    seen = ideal()
    changed = {f"{name.rpartition('_')[0].replace('_', '-')}/{name[-1]}": said for name, said in words.items()}
    assert changed.keys() <= seen.words.keys()
    return replace(seen, words={**seen.words, **changed})
