"""The database, recording every change of a job record, every acknowledgement and every read; and the checks over it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from functions.outside.payment_provider import PAYMENT_PROVIDER
from shared.backends.memory.database import MemoryDatabase
from shared.backends.memory.queue import MemoryQueue
from shared.errors import CancelAsked, ClaimLost, StoreUnavailable
from shared.intake.acceptance import Accepted
from shared.job_record import OVER, SYSTEM, JobView, Status, record_id
from shared.outbox import due_at
from shared.producer import NotTaken
from tests.simulation.jobs import SIM_WORKER, refresh
from tests.simulation.lanes import Lanes
from tests.world import START

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shared.backends.memory.cache import MemoryCache
    from shared.claim import Claim
    from shared.delivery import Delivery
    from shared.outbox import Posting
    from shared.producer import Outgoing
    from tests.simulation.faults import Faults
    from tests.simulation.outages import Outages
    from tests.simulation.splits import Splits
    from tests.simulation.world import World

LEFT_NEVER = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
# The sweeper's grace and two of its rounds; a process may be frozen for five minutes when faults stop.
SENT_WITHIN = 120 + 2 * 60 + 300
LOST_AFTER = timedelta(minutes=10)  # in a run, which lasts for hours and not for days
STORE = StoreUnavailable("away").dependency
FINAL = LEFT_NEVER | {Status.DEAD_LETTERED}  # but for a replay


class Violation(AssertionError):  # noqa: N818 - what was found
    """An invariant does not hold."""


def demand(holds: object, invariant: str, detail: object) -> None:
    """Raise a violation unless it holds.

    Raises:
        Violation: naming the invariant.
    """
    if not holds:
        message = f"{invariant}: {detail}"
        raise Violation(message)


@dataclass
class Read:
    """What a reader saw, and when it began to look."""

    order: str
    status: str
    begun: float


class Watched:
    """The cache of a run; whose lease somebody else gives back is noted."""

    def __init__(self, cache: MemoryCache, history: History) -> None:
        self._cache = cache
        self._history = history

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def finish(self, tags: Any, leases: Any) -> None:
        before = dict(self._cache.leases)
        self._cache.finish(tags, leases)
        for key in before.keys() - self._cache.leases.keys():
            if (key, before[key][0]) not in leases:
                self._history.broken.append(("I30", f"the lease on {key} was given back by another"))


class Queue(MemoryQueue):
    """The queue of a run; what was sent to it is noted, and now and then it takes a part of a batch alone."""

    def __init__(self, history: History, faults: Faults, *given: Any) -> None:
        super().__init__(*given)
        self.history = history
        self.faults = faults

    def send(self, batch: Sequence[Outgoing]) -> list[str | NotTaken]:
        answers: list[str | NotTaken] = []
        for message in batch:
            if self.faults.happens("refused"):
                answers.append(NotTaken("InternalError", final=False))
                continue
            answers += super().send([message])
            self.history.on_queue.add(message.body)
            wrong = self.history.lanes.saw(message.body)
            if wrong is not None:
                self.history.broken.append(("I12", wrong))
        return answers


class History(MemoryDatabase):
    """The database of a run."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock, lost_after=LOST_AFTER)
        self.changes: list[tuple[str, JobView]] = []
        self.reads: list[Read] = []
        self.done_at: dict[str, float] = {}
        self.numbers: dict[str, list[tuple[str, int]]] = {}
        self.lost: dict[str, float] = {}
        self.broken: list[tuple[str, str]] = []
        self.decided: set[str] = set()
        self.received: set[str] = set()
        self.on_queue: set[str] = set()
        self.posted_at: dict[str, float] = {}
        self.sent_at: dict[str, float] = {}
        self.payloads: dict[str, str] = {}
        self.lanes = Lanes()
        self.ends: dict[str, list[float]] = {}
        self.claimed_at: dict[str, float] = {}
        self.outages: Outages | None = None
        self.splits: Splits | None = None
        self.reopened: dict[str, list[float]] = {}

    def _note(self, record: str, before: JobView | None) -> None:
        after = self.records.get(record)
        if after is not None and after.payload is not None:
            self.payloads[record] = after.payload
        if after is not None and after.ended_at is not None and (before is None or after.ended_at != before.ended_at):
            self.ends.setdefault(record, []).append(self.clock.monotonic())
        if after is not None and after != before:
            self.changes.append((record, after))

    def claim(self, claim: Any, now: Any) -> Any:
        before = self.records.get(claim.record)
        answer = super().claim(claim, now)
        self.claimed_at.setdefault(claim.token, self.clock.monotonic())
        self._note(claim.record, before)
        after = self.records.get(claim.record)
        if before is not None and after is not None and after.token != before.token:
            if before.status is Status.RUNNING and before.claim_until is not None and before.claim_until >= now:
                self.broken.append(("I15", f"taken over at {now}: {before}"))
            if before.not_before is not None and before.not_before > now:
                self.broken.append(("I16", f"begun at {now}: {before}"))
            if before.status in OVER and not _may_begin_again(before, claim):
                self.broken.append(("R1.1", f"begun again by {claim.job_id}, made at {claim.reopens}: {before}"))
        return answer

    def lane(self, name: str) -> Iterator[Posting]:
        """By the order of the commits themselves: the clocks that a table orders them by step by hours here."""
        waiting = {posting.id: posting for posting in super().lane(name)}
        yield from (posting for posting in list(self.outbox.values()) if posting.id in waiting)

    def commit(self, hold: Any, commit: Any, now: Any) -> None:
        before = {hold.record: self.records.get(hold.record)}
        before.update(
            {
                reconciliation.record: self.records.get(reconciliation.record)
                for reconciliation in commit.reconciliations
            }
        )
        super().commit(hold, commit, now)
        self.decided |= {posting.id for posting in commit.postings}
        if commit.status is Status.COMPLETED and self.splits is not None:
            wrong = self.splits.saw_the_end_of(hold.record)
            if wrong is not None:
                self.broken.append(("R5.2", wrong))
        for record, view in before.items():
            self._note(record, view)

    def checkpoint(self, hold: Any, checkpoint: Any, now: Any) -> None:
        before = self.records.get(hold.record)
        asked: CancelAsked | None = None
        try:
            super().checkpoint(hold, checkpoint, now)
        except CancelAsked as error:  # it is written all the same
            asked = error
        self.decided |= {posting.id for posting in checkpoint.postings}
        self._note(hold.record, before)
        for part in checkpoint.parts:
            self.decided.add(part.posting.id)
            self._note(part.record, None)
        if asked is not None:
            raise asked

    def wait(self, parent: JobView, look_at: Any, now: Any) -> None:
        before = self.records.get(parent.record)
        super().wait(parent, look_at, now)
        self._note(parent.record, before)

    def wake(self, parent: JobView, posting: Posting, now: Any) -> None:
        before = self.records.get(parent.record)
        super().wake(parent, posting, now)
        self.decided.add(posting.id)
        self._note(parent.record, before)

    def release(self, hold: Any, release: Any, now: Any) -> None:
        before = self.records.get(hold.record)
        super().release(hold, release, now)
        self._note(hold.record, before)
        after = self.records[hold.record]
        if before is None or before == after or after.attempts < before.attempts:
            return
        failure = after.last_failure
        if failure is None or failure == before.last_failure or failure.dependency == STORE:
            self.broken.append(("I19", f"an attempt is spent, and nothing of its own failed: {after}"))
        elif self.outages is not None and failure.dependency == PAYMENT_PROVIDER.name:
            wrong = self.outages.spent(before)
            if wrong is not None:
                self.broken.append(("I19", wrong))

    def bury(self, hold: Any, death: Any, failure: Any, now: Any) -> None:
        before = self.records.get(hold.record)
        super().bury(hold, death, failure, now)
        self._note(hold.record, before)

    def accept(self, acceptance: Any, now: Any) -> Any:
        before = self.records.get(acceptance.record)
        answer = super().accept(acceptance, now)
        if isinstance(answer, Accepted):
            self.decided.add(acceptance.posting.id)
        self._note(acceptance.record, before)
        return answer

    def post(self, posting: Any, now: Any) -> None:
        """What is posted beside a commit is a copy of what was sent before."""
        super().post(posting, now)
        self.decided.add(posting.id)
        if not posting.id.startswith("rescue/") and posting.body not in self.received:
            self.broken.append(("I9", f"posted by itself: {posting}"))

    def put_posting(self, posting: Any, now: Any) -> None:
        super().put_posting(posting, now)
        self.posted_at.setdefault(posting.id, self.clock.monotonic())

    def mark_sent(self, posting: Any, now: Any) -> None:
        """Only what is on its queue, or was there, may be marked."""
        super().mark_sent(posting, now)
        self.sent_at.setdefault(posting.id, self.clock.monotonic())
        if posting.body not in self.on_queue:
            self.broken.append(("I10", f"marked and not sent: {posting}"))

    def cancel(self, record: str, owner: str, now: Any) -> Any:
        before = self.records.get(record)
        answer = super().cancel(record, owner, now)
        self._note(record, before)
        return answer

    def give_up(self, view: JobView, failure: Any, now: Any) -> None:
        before = self.records.get(view.record)
        if before is not None and before.claim_until is not None and before.claim_until >= now:
            self.broken.append(("I15", f"given up at {now}, while an attempt holds it: {before}"))
        super().give_up(view, failure, now)
        self._note(view.record, before)

    def fence(self, hold: Any, key: str) -> int:
        number = super().fence(hold, key)
        self.numbers.setdefault(key, []).append((hold.token, number))
        return number

    def prolong(self, hold: Any, until: Any, now: Any) -> None:
        before = self.records.get(hold.record)
        try:
            super().prolong(hold, until, now)
        except ClaimLost:
            self.lost.setdefault(hold.token, self.clock.monotonic())
            raise
        self._note(hold.record, before)

    def called(self, path: str, number: int, now: Any) -> None:
        """A fenced job begins a call of the gate, at this time of its process."""
        token = next(token for token, known in self.numbers[f"plant{path}"] if known == number)
        moment = self.clock.monotonic()
        if moment > self.lost.get(token, moment):
            self.broken.append(("I32", f"{path} called at {moment} by {token}, which had been told that it is lost"))
        for view in self.records.values():
            if view.token == token and view.claim_until is not None and view.claim_until < now:
                self.broken.append(("I31", f"{path} called at {now} by a claim that had run out: {view}"))

    def ended(self, delivery: Delivery) -> None:
        """The message's job is done, and its invalidation too."""
        sent = json.loads(delivery.body)
        view = self.records.get(record_id(SYSTEM, sent["job_type"], sent["idempotency_key"]))
        order = sent["payload"].get("order_id")
        if view is not None and f"order/{order}" in {tag.name for tag in view.tags}:
            self.done_at.setdefault(order, self.clock.monotonic())

    def saw(self, order: str, status: str, begun: float) -> None:
        """A reader saw this status."""
        self.reads.append(Read(order, status, begun))


@dataclass
class Checks:
    """The invariants, over the history of a run that is at rest."""

    world: World
    checked: list[str] = field(default_factory=list)

    def all(self) -> list[str]:
        """Check all; give their names.

        Raises:
            Violation: one does not hold.
        """
        for check in (
            self.nothing_was_seen_to_break,
            self.i14_one_effect,
            self.g5_one_charge,
            self.i15_i16_states_are_monotone,
            self.i19_attempts_are_bounded,
            self.i10_everything_is_sent_in_time,
            self.i9_no_message_without_its_commit_and_no_commit_without_its_message,
            self.i24_everything_ends,
            self.i26_conservation,
            self.i27_fencing_numbers_grow,
            self.i36_no_stale_read,
            self.i1_i2_i3_one_operation_for_each_intent,
            self.i12_what_is_in_order_is_sent_whole,
            self.r1_1_a_key_that_is_unique_while_active,
            self.r5_2_a_split_job_ends_once_after_its_parts,
        ):
            check()
            self.checked.append(check.__name__)
        return self.checked

    def _record(self, job_type: str, key: str) -> JobView | None:
        return self.world.history.records.get(record_id(SYSTEM, job_type, key))

    def nothing_was_seen_to_break(self) -> None:
        """I15, I16, I19, I30 to I32, which are seen as they happen."""
        for invariant, detail in self.world.history.broken:
            demand(holds=False, invariant=invariant, detail=detail)

    def i14_one_effect(self) -> None:
        """Each committed job changed its item once."""
        history = self.world.history
        for account, amounts in self.world.amounts.items():
            done = [key for key in amounts if (view := self._record("add", key)) and view.status is Status.COMPLETED]
            stored = history.items.get(("accounts", (account,)))
            total = 0 if stored is None else stored.attributes["total"]
            demand(total == sum(amounts[key] for key in done), "I14", f"{account} holds {total}, done are {done}")
            demand((0 if stored is None else stored.version) == len(done), "I14", f"{account} changed {stored}")
        for (table, key), stored in history.items.items():
            if table == "plants":
                days = self.world.days[key[0]]
                grown = [k for k in days if (view := self._record("grow", k)) and view.status is Status.COMPLETED]
                demand(stored.version == len(grown), "I14", f"{key} changed {stored}, grown are {grown}")
                demand(stored.attributes["height"] == sum(days[k] for k in grown), "I14", f"{key} is {stored}")
            if table == "orders":
                paid = stored.attributes["status"] == "paid"
                demand(stored.version == 1 + paid, "I14", f"{key} is {stored}")

    def g5_one_charge(self) -> None:
        """Each intent was charged once at most, and a paid order once."""
        charges = self.world.outside.charges
        demand(all(count == 1 for count in charges.values()), "G5", charges)
        for (table, _), stored in self.world.history.items.items():
            if table == "orders" and stored.attributes["status"] == "paid":
                demand(charges[str(stored.attributes["payment_intent_id"])] == 1, "G5", stored)

    def i15_i16_states_are_monotone(self) -> None:
        """A final state is never left, its result never changes, and attempts never jump."""
        last: dict[str, JobView] = {}
        for record, after in self.world.history.changes:
            before = last.get(record)
            last[record] = after
            if before is None:
                continue
            if before.status not in LEFT_NEVER and after.replays == before.replays + 1:
                demand(
                    after.status is Status.ACCEPTED and after.death >= before.death, "I16", f"{before} became {after}"
                )
                continue
            if before.status in FINAL and after.names["job_type"] == refresh.name and after.job_id != before.job_id:
                continue  # another job of the same key: who may begin it is looked at when it is claimed
            demand(before.status not in FINAL, "I16", f"{before} became {after}")
            if before.status is Status.UNKNOWN:
                demand(
                    after.status in {Status.COMPLETED, Status.FAILED, Status.RETRYING},
                    "I16",
                    f"{before} became {after}",
                )
            demand(abs(after.attempts - before.attempts) <= 1, "I16", f"{before} became {after}")
            writer = (
                after.status in {Status.COMPLETED, Status.FAILED, Status.RETRYING} and before.status is Status.RUNNING
            )
            demand(not writer or after.token == before.token, "I15", f"{before} became {after}")

    def i19_attempts_are_bounded(self) -> None:
        """No job had more attempts than it may."""
        most = {job.name: job.retry.max_attempts for job in SIM_WORKER.jobs}
        for view in self.world.history.records.values():
            demand(view.attempts <= most[view.names["job_type"]], "I19", view)

    def i10_everything_is_sent_in_time(self) -> None:
        """Whatever the stream loses is sent within the sweeper's grace and two of its rounds, once faults have stopped."""
        history = self.world.history
        for name, posting in history.outbox.items():
            stamped = (history.posted[name] - START).total_seconds()  # by a clock that may have been off
            begun = max(history.posted_at[name], stamped)
            due = begun + (due_at(posting, START) - START).total_seconds()
            latest = max(due, self.world.healed_at) + SENT_WITHIN
            sent = history.sent_at.get(name, latest if name in history.parked else float("inf"))
            demand(sent <= latest, "I10", f"{name} was due at {due}, and sent at {sent}")

    def i9_no_message_without_its_commit_and_no_commit_without_its_message(self) -> None:
        """What is in the outbox was put there by a transaction that was written, and each of those put what it had to."""
        history = self.world.history
        demand(history.outbox.keys() <= history.decided, "I9", history.outbox.keys() - history.decided)
        accepted = set(history.accepted_by.values())
        demand(accepted <= history.outbox.keys(), "I9", accepted - history.outbox.keys())
        ended: dict[str, set[str]] = {"add": set(), "echo": set()}
        for view in history.records.values():
            kind, key = view.names["job_type"], view.names["idempotency_key"]
            if kind in ended and (kind == "echo" or view.status is Status.COMPLETED):
                account = "" if kind == "echo" else f"{json.loads(history.payloads[view.record])['account']}/"
                ended[kind].add(f"{account}{key}")
        demand(ended["add"] == ended["echo"], "I9", ended["add"] ^ ended["echo"])

    def i24_everything_ends(self) -> None:
        """Every job is final, or its dead letter lies in the dead-letter queue."""
        letters = {letter.body for letter in self.world.queue.dead}
        for view in self.world.history.records.values():
            if view.status in LEFT_NEVER:
                continue
            if view.last_failure is not None and view.last_failure.reason == "message-lost":
                continue  # it is told of by its record, an alarm and the operation
            key, kind = view.names["idempotency_key"], view.names["job_type"]
            mine = [body for body in letters if json.loads(body)["idempotency_key"] == key]
            if view.status is Status.UNKNOWN:  # its reconciling job must have died
                mine = [body for body in letters if json.loads(body)["payload"].get("capture_key") == key]
            demand(mine, "I24", f"{kind} {key} is {view.status}, and no dead letter tells of it")

    def i26_conservation(self) -> None:
        """Every message that was sent has a job that ended, or is a dead letter."""
        letters = {_name(letter.body) for letter in self.world.queue.dead}
        for body in self.world.bodies:
            sent = json.loads(body)
            view = self._record(sent["job_type"], sent["idempotency_key"])
            ended = view is not None and view.status in LEFT_NEVER | {Status.UNKNOWN}
            demand(ended or _name(body) in letters, "I26", f"{body} is nowhere: {view}")
        hopeless = [letter for letter in self.world.queue.dead if '"hopeless"' in letter.body]
        demand(hopeless, "I23", "the hopeless message is in no dead-letter queue")

    def i27_fencing_numbers_grow(self) -> None:
        """No number was given to two attempts, and each attempt's is higher than those before it."""
        for key, granted in self.world.history.numbers.items():
            last: dict[str, int] = {}
            for token, number in granted:
                known = last.setdefault(token, number)
                demand(known == number, "I27", f"{key}: attempt {token} got {known} and {number}")
            numbers = list(last.values())
            demand(numbers == sorted(set(numbers)), "I27", f"{key}: {granted}")

    def i36_no_stale_read(self) -> None:
        """Nobody who began to read after an order was done saw it as it was before."""
        for read in self.world.history.reads:
            done = self.world.history.done_at.get(read.order)
            stale = done is not None and read.begun > done and read.status == "pending"
            demand(not stale, "I36", f"{read}, done at {done}")

    def i1_i2_i3_one_operation_for_each_intent(self) -> None:
        """What the clients were told is so, and stays so."""
        self.world.clients.check()

    def i12_what_is_in_order_is_sent_whole(self) -> None:
        """Each step of a line was sent; that it was in its place is seen as it happens."""
        for (table, key), stored in self.world.history.items.items():
            if table == "lines":
                sent = self.world.history.lanes.sent[key[0]]
                demand(stored.attributes["steps"] == len(sent), "I12", f"{stored}, sent were {sent}")

    def r5_2_a_split_job_ends_once_after_its_parts(self) -> None:
        """And tells what became of them."""
        self.world.splits.check(demand)

    def r1_1_a_key_that_is_unique_while_active(self) -> None:
        """One job after the other, and no request left out."""
        self.world.requests.check()


def _may_begin_again(before: JobView, claim: Claim) -> bool:
    """Whether the message is another one than the last, and was made after its end."""
    return (
        claim.reopens is not None
        and before.ended_at is not None
        and before.ended_at < claim.reopens
        and claim.job_id not in {None, before.job_id}
    )


def _name(body: str) -> tuple[str, str]:
    """Job type and key: a message that was sent anew has its fields in another order."""
    sent = json.loads(body)
    return sent["job_type"], sent["idempotency_key"]
