"""What a handler reads and stages; the pipeline commits it in one transaction with the end of the job.

Items read remember their version, and every item read or written must be unchanged at the commit: there is no blind
overwrite and no write skew. What DynamoDB or SQS would refuse is refused here, before anything is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from shared.dependency import Dependency
from shared.errors import DeclarationError, Refused, Stopping
from shared.failpoints import Failpoint, failpoint
from shared.files import Files, Reach
from shared.outbox import posting_of
from shared.table import Access, Right, Table
from shared.tag import Fresh, Tag, Version
from shared.wire.deposits import check_deposit_schedule
from shared.work.long_work import LongWork
from shared.work.staging import Staged, Staging

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping
    from random import Random

    from shared.caching.store import Loaded
    from shared.clock import Clock, Tokens
    from shared.commit import Reconciliation
    from shared.dependency import Reply
    from shared.files import FileStore
    from shared.item import Item, ItemStore
    from shared.job import Use
    from shared.limits import Value
    from shared.message import Message
    from shared.trace import Trace
    from shared.wire.deposits import Deposits
    from shared.work.calls import Calls
    from shared.work.steps import Steps

TOMBSTONE_KEPT = timedelta(days=30)


class Guard(Protocol):
    """What must hold while the handler works: a lease, or its heartbeat."""

    def check(self) -> None:
        """Return if it still does; raise LeaseLost or ClaimLost otherwise."""
        ...


@dataclass(slots=True)
class UnitOfWork(LongWork):
    """Everything a handler does to the world, between the claim and the commit.

    Attributes:
        idempotency_key: of the job.
        attempt: its number, 1 or more.
        token: this attempt's own name, that no other attempt has.
        record: of the job, where a client asked for it through the front door; messages about it name it.
        tenant: for whom the job is done; goes on in what is enqueued here.
        trace: of what asked for the job; goes on in what is enqueued and called here.
        fifo: whether the worker's own queue is one.
        steps: its checkpoints and its progress.
        staged: what the next transaction writes.
        files: those of the folders that the job declares.
        deadline: when the handler must have returned.
    """

    items: ItemStore
    calls: Calls
    clock: Clock
    tokens: Tokens
    worker: str
    idempotency_key: str
    attempt: int
    token: str
    deadline: datetime
    stopping: threading.Event
    steps: Steps
    random: Random
    guards: tuple[Guard, ...] = ()
    uses: tuple[Use, ...] = ()
    fences: Callable[[], int] | None = None
    record: str | None = None
    trace: Trace | None = None
    tenant: str | None = None
    fifo: bool = False
    store: FileStore | None = None
    deposits: Deposits | None = None
    _number: int | None = None
    staged: Staged = field(init=False)
    files: Files = field(init=False)

    def __post_init__(self) -> None:
        """Begin with nothing read or staged."""
        self.staged = Staged(Staging(self.items))
        reaches = tuple(use for use in self.uses if isinstance(use, Reach))
        self.files = Files(self.store, reaches, self.check)

    def time_left(self) -> timedelta:
        """Time until the deadline; negative when it has passed."""
        return self.deadline - self.clock.now()

    def check(self) -> None:
        """Return if the handler may take its next step.

        Raises:
            LeaseLost: a lease or the heartbeat is lost; the job is postponed.
            ClaimLost: another attempt took the job over.
            Stopping: the process is to end; the job goes back with its attempt.
            TimeoutError: the deadline has passed; the attempt is spent.
        """
        self._check_guards()
        if self.time_left() <= timedelta(0):
            message = "The job's deadline has passed."
            raise TimeoutError(message)

    def _check_guards(self) -> None:
        for guard in self.guards:
            guard.check()
        if self.stopping.is_set():
            message = "The process is to end."
            raise Stopping(message)

    def read(self, table: Table, *key: str) -> Item | None:
        """Read an item, consistently, and remember its version; the commit fails if it has changed by then.

        Raises:
            DeclarationError: the job does not declare this table in `uses`.
            Unavailable: no answer.
        """
        self.check()
        self._demand(table, Right.READ)
        found = self.staged.items.read(table, key)
        failpoint(Failpoint.ITEM_READ)
        return found

    def create(self, table: Table, **attributes: Value) -> Item:
        """Stage a new item, with its key among the attributes; the commit fails if it exists by then.

        Raises:
            Refused: DynamoDB would refuse it, or the item is known to exist.
        """
        self._demand(table, Right.READ_WRITE)
        return self.staged.items.create(table, attributes)

    def update(self, item: Item, **changes: Value) -> Item:
        """Stage changed attributes of an item read or created here; the commit fails if it has changed by then.

        Raises:
            Refused: DynamoDB would refuse it, or the item does not come from this unit of work.
        """
        self._demand(item.table, Right.READ_WRITE)
        return self.staged.items.update(item, changes)

    def delete(self, item: Item) -> None:
        """Stage the deletion of an item read here; a tombstone keeps its version for 30 days.

        Raises:
            Refused: the item does not come from this unit of work.
        """
        self._demand(item.table, Right.READ_WRITE)
        self.staged.items.delete(item, self.clock.now() + TOMBSTONE_KEPT)

    def invalidate(self, *tags: str, version: int | Version | None = None) -> None:
        """Have cache tags dropped after the commit; with a version, older values stay out of the cache for a while.

        Raises:
            Refused: a tag is empty, or the version is none.
        """
        floor = version if version is None or isinstance(version, Version) else Version(version)
        for tag in [Tag(name, floor) for name in tags]:  # all are looked at before one is kept
            self.staged.tag(tag)

    def refresh(self, tag: str, name: str, entry: Loaded) -> None:
        """Have a cache tag dropped after the commit, and one of its entries moved forward instead of forgotten.

        Where that entry is not kept, or a newer one was, it is an invalidation with the entry's version and no more: the
        next reader loads. A redelivery repeats the invalidation alone.

        Raises:
            Refused: the tag is empty, or the entry has no version.
        """
        from shared.caching.lives import Lifetimes  # noqa: PLC0415 - a job that refreshes nothing does not pay for it

        if entry.version is None:
            message = "Only an entry with a version can be refreshed: without one nobody can tell old from new."
            raise Refused(message)
        self.staged.tag(Tag(tag, entry.version, Fresh(name, entry, Lifetimes().of(entry, self.random))))

    def enqueue(
        self,
        message: Message,
        *,
        worker: str | None = None,
        delay: timedelta = timedelta(0),
        group: str | None = None,
        ordered: bool = False,
    ) -> None:
        """Have a job sent if and when this one commits, to its own worker or to the one named.

        It waits for the delay, from now on, and for the message's `run_at`: up to a year. `ordered` messages of one group
        are sent in the order of their commits, one after the other; a FIFO queue then keeps that order. Let the version
        in the payload decide all the same: a message that was parked leaves a gap, and a replay comes late.

        Raises:
            Refused: SQS would refuse the message, the wait is too long or for a FIFO queue, or it is ordered without a group.
        """
        wait = message.wait(self.clock.now())
        longer = max(delay, wait) if wait else delay
        to = worker or self.worker
        if self.fifo and to == self.worker and (longer or message.run_at is not None):
            text = "A FIFO queue runs a group in order: it takes neither a delay nor `run_at` of single messages."
            raise Refused(text)
        named = self.named(message)
        self.staged.post(posting_of(named, self.tokens(), to, delay=longer, group=group, ordered=ordered))

    def named(self, message: Message) -> Message:
        """The message as it is sent from here: this job's trace, its tenant if it names none, a large payload deposited.

        Raises:
            Refused: the payload is larger than what is kept, or is to be kept for too long.
            Unavailable: it was to be deposited, and the store did not answer.
        """
        payload = message.payload if self.deposits is None else self.deposits.fit(message.payload)
        check_deposit_schedule(payload, message.wait(self.clock.now()))
        mine = replace(message, payload=payload, tenant=message.tenant or self.tenant)
        return mine.stamped(self.tokens, self.clock.now(), lambda: self.trace and self.trace.child(self.tokens))

    def reconcile(self, reconciliation: Reconciliation) -> None:
        """Settle a job that stopped as unknown, in the commit of this one; the commit fails if it is unknown no more.

        Raises:
            Refused: the job is settled here already.
        """
        self.staged.settle(reconciliation)

    def fencing_number(self) -> int:
        """A number for an outside system that keeps the highest it has seen: it grows with each attempt on the lock key.

        Raises:
            DeclarationError: the job has no lock.
            ClaimLost: another attempt took the job over.
            Unavailable: DynamoDB did not answer.
        """
        self.check()
        if self.fences is None:
            message = "The job declares no `lock`: a fencing number counts the holders of a lock key."
            raise DeclarationError(message)
        if self._number is None:
            self._number = self.fences()
            failpoint(Failpoint.FENCED)
        return self._number

    def call(
        self,
        dependency: Dependency,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Call a declared dependency once, within its bounds, its timeout and the deadline; the leases must hold.

        Raises:
            DeclarationError: the job does not declare it in `uses`.
            NotNow: its gate lets nobody in; the job is postponed.
            Unavailable: it was not done; the job is retried.
            Ambiguous: it may have been done, now or by an earlier attempt.
            LeaseLost: before anything was sent.
        """
        for use in self.uses:
            if isinstance(use, Dependency) and use.name == dependency.name:
                more = headers or {}
                return self.calls.make(
                    use, method, path, body=body, headers=more, time_left=self.time_left, check=self.check
                )
        text = f"The job calls {dependency.name!r} without declaring it: add it to `uses`."
        raise DeclarationError(text)

    def _begin_step(self) -> None:
        """What was staged is committed, and what was called is settled."""
        self.staged = Staged(Staging(self.items))
        self.calls.begin_step(self.clock.now())

    def _demand(self, table: Table, right: Right) -> None:
        for use in self.uses:
            if (
                isinstance(use, Access)
                and use.table == table
                and (right is Right.READ or use.right is Right.READ_WRITE)
            ):
                return
        message = f"The job uses table {table.name!r} ({right.value}) without declaring it: add it to `uses`."
        raise DeclarationError(message)
