"""What a handler reads and stages; the pipeline commits it in one transaction with the end of the job.

Items read remember their version, and every item read or written must be unchanged at the commit: there is no blind
overwrite and no write skew. What DynamoDB or SQS would refuse is refused here, before anything is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from shared.errors import DeclarationError, Refused, Stopping
from shared.item import Create, Delete, Item, Replace, Unchanged, Write
from shared.limits import (
    TRANSACTION_BYTES,
    TRANSACTION_ITEMS,
    Value,
    check_item,
)
from shared.outbox import Posting, posting_of
from shared.table import Access, Right, Table

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from shared.clock import Clock, Tokens
    from shared.dependency import Dependency, Reply, Transport
    from shared.item import ItemStore, Key
    from shared.job_record import Reconciliation
    from shared.lease import Lease
    from shared.message import Message

TOMBSTONE_KEPT = timedelta(days=30)
_RECORD_ITEMS = 1  # the job record's own place in the transaction


@dataclass(slots=True)
class _Slot:
    """What is known and staged of one item."""

    table: Table
    key: Key
    seen: int | None
    item: Item | None
    staged: Write | None = None


@dataclass(slots=True)
class UnitOfWork:
    """Everything a handler does to the world, between the claim and the commit.

    Attributes:
        idempotency_key: of the job.
        attempt: its number, 1 or more.
        token: this attempt's own name, that no other attempt has.
        deadline: when the handler must have returned.
    """

    items: ItemStore
    transport: Transport
    clock: Clock
    tokens: Tokens
    worker: str
    idempotency_key: str
    attempt: int
    token: str
    deadline: datetime
    leases: tuple[Lease, ...] = ()
    uses: tuple[Access | Dependency, ...] = ()
    stopping: threading.Event | None = None
    fences: Callable[[], int] | None = None
    _number: int | None = None
    _slots: dict[tuple[str, Key], _Slot] = field(default_factory=dict)
    _tags: list[str] = field(default_factory=list)
    _postings: list[Posting] = field(default_factory=list)
    _reconciliations: list[Reconciliation] = field(default_factory=list)

    def time_left(self) -> timedelta:
        """Time until the deadline; negative when it has passed."""
        return self.deadline - self.clock.now()

    def check(self) -> None:
        """Return if the handler may take its next step.

        Raises:
            LeaseLost: a lease is lost; the job is postponed.
            Stopping: the process is to end; the job goes back with its attempt.
            TimeoutError: the deadline has passed; the attempt is spent.
        """
        for lease in self.leases:
            lease.check()
        if self.stopping is not None and self.stopping.is_set():
            message = "The process is to end."
            raise Stopping(message)
        if self.time_left() <= timedelta(0):
            message = "The job's deadline has passed."
            raise TimeoutError(message)

    def read(self, table: Table, *key: str) -> Item | None:
        """Read an item, consistently, and remember its version; the commit fails if it has changed by then.

        Raises:
            DeclarationError: the job does not declare this table in `uses`.
            Unavailable: no answer.
        """
        self.check()
        self._demand(table, Right.READ)
        _check_key(table, key)
        slot = self._slots.get((table.name, key))
        if slot is None:
            stored = self.items.read(table, key)
            alive = stored is not None and not stored.deleted
            item = Item(table, key, stored.attributes, stored.version) if stored is not None and alive else None
            slot = _Slot(table, key, seen=None if stored is None else stored.version, item=item)
            self._slots[table.name, key] = slot
        return slot.item

    def create(self, table: Table, **attributes: Value) -> Item:
        """Stage a new item, with its key among the attributes; the commit fails if it exists by then.

        Raises:
            Refused: DynamoDB would refuse it, or the item is known to exist.
        """
        self._demand(table, Right.READ_WRITE)
        names = (table.key,) if table.sort_key is None else (table.key, table.sort_key)
        check_item(attributes, names, f"{table.name} item")
        _refuse_owned(table, attributes)
        key = tuple(str(attributes[name]) for name in names)
        slot = self._slots.setdefault((table.name, key), _Slot(table, key, seen=None, item=None))
        if slot.item is not None:
            message = f"{table.name} {'/'.join(key)} exists: update it instead."
            raise Refused(message)
        if slot.seen is None:
            slot.staged = Create(table, key, attributes)
        else:
            # Over its own tombstone, as read.
            slot.staged = Replace(table, key, attributes, slot.seen, frozenset(attributes))
        slot.item = Item(table, key, attributes, (slot.seen or 0) + 1)
        return slot.item

    def update(self, item: Item, **changes: Value) -> Item:
        """Stage changed attributes of an item read or created here; the commit fails if it has changed by then.

        Raises:
            Refused: DynamoDB would refuse it, or the item does not come from this unit of work.
        """
        slot = self._own(item)
        _refuse_owned(item.table, changes)
        names = (item.table.key,) if item.table.sort_key is None else (item.table.key, item.table.sort_key)
        attributes = {**item, **changes}
        if tuple(attributes[name] for name in names) != item.key:
            message = f"{item.table.name} {'/'.join(item.key)}: a key never changes; create another item."
            raise Refused(message)
        check_item(attributes, names, f"{item.table.name} item")
        match slot.staged:
            case Create():
                slot.staged = Create(item.table, item.key, attributes)
            case Replace(changed=before):
                slot.staged = Replace(item.table, item.key, attributes, slot.seen or 0, before | changes.keys())
            case _:
                slot.staged = Replace(item.table, item.key, attributes, slot.seen or 0, frozenset(changes))
        slot.item = Item(item.table, item.key, attributes, item.version)
        return slot.item

    def delete(self, item: Item) -> None:
        """Stage the deletion of an item read here; a tombstone keeps its version for 30 days.

        Raises:
            Refused: the item does not come from this unit of work.
        """
        slot = self._own(item)
        if slot.seen is None:  # created here: nothing is written, but it must not be there either
            slot.staged, slot.item = None, None
            return
        slot.staged = Delete(item.table, item.key, slot.seen, self.clock.now() + TOMBSTONE_KEPT)
        slot.item = None

    def invalidate(self, *tags: str) -> None:
        """Have cache tags dropped after the commit.

        Raises:
            Refused: a tag is empty.
        """
        if not all(isinstance(tag, str) and tag for tag in tags):
            message = f"A cache tag is a string that is not empty, not {tags!r}."
            raise Refused(message)
        self._tags.extend(tag for tag in tags if tag not in self._tags)

    def enqueue(
        self, message: Message, *, worker: str | None = None, delay: timedelta = timedelta(0), group: str | None = None
    ) -> None:
        """Have a job sent if and when this one commits, to its own worker or to the one named.

        Raises:
            Refused: SQS would refuse the message or its delay.
        """
        self._postings.append(posting_of(message, self.tokens(), worker or self.worker, delay=delay, group=group))

    def reconcile(self, reconciliation: Reconciliation) -> None:
        """Settle a job that stopped as unknown, in the commit of this one; the commit fails if it is unknown no more.

        Raises:
            Refused: the job is settled here already.
        """
        if any(known.record == reconciliation.record for known in self._reconciliations):
            message = "The unknown job is settled twice in this unit of work: keep one."
            raise Refused(message)
        self._reconciliations.append(reconciliation)

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
        """Call a declared dependency once, within its timeout and the deadline; the leases must hold.

        Raises:
            DeclarationError: the job does not declare it in `uses`.
            Unavailable: it was not done; the job is retried.
            Ambiguous: it may have been done.
            LeaseLost: before anything was sent.
        """
        self.check()
        for use in self.uses:
            if not isinstance(use, Access) and use.name == dependency.name:
                within = min(use.timeout, self.time_left())
                return self.transport.send(use, method, path, body=body, headers=headers or {}, within=within)
        text = f"The job calls {dependency.name!r} without declaring it: add it to `uses`."
        raise DeclarationError(text)

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags to invalidate after the commit."""
        return tuple(self._tags)

    @property
    def postings(self) -> tuple[Posting, ...]:
        """Messages to send."""
        return tuple(self._postings)

    @property
    def reconciliations(self) -> tuple[Reconciliation, ...]:
        """Unknown jobs to settle."""
        return tuple(self._reconciliations)

    @property
    def writes(self) -> tuple[Write, ...]:
        """Conditional writes, one for each item read or staged.

        Raises:
            Refused: they do not fit into one transaction.
        """
        writes = tuple(slot.staged or Unchanged(slot.table, slot.key, slot.seen) for slot in self._slots.values())
        number = len(writes) + len(self._postings) + len(self._reconciliations) + _RECORD_ITEMS
        if number > TRANSACTION_ITEMS:
            message = (
                f"{len(writes)} items + {len(self._postings)} messages + {len(self._reconciliations)} settled jobs + the job"
                f" record = {number}: DynamoDB commits {TRANSACTION_ITEMS} in one transaction; split the job."
            )
            raise Refused(message)
        size = sum(
            check_item(write.attributes, (), "item") for write in writes if isinstance(write, Create | Replace)
        ) + sum(len(posting.body.encode()) for posting in self._postings)
        if size > TRANSACTION_BYTES:
            message = f"{size} bytes: DynamoDB commits {TRANSACTION_BYTES} in one transaction; split the job."
            raise Refused(message)
        return writes

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

    def _own(self, item: Item) -> _Slot:
        self._demand(item.table, Right.READ_WRITE)
        slot = self._slots.get((item.table.name, item.key))
        if slot is None:
            message = f"{item.table.name} {'/'.join(item.key)} was not read or created by this unit of work: read it."
            raise Refused(message)
        if slot.item is not item:
            message = f"{item.table.name} {'/'.join(item.key)} was changed since: go on with what update() gave back."
            raise Refused(message)
        return slot


def _check_key(table: Table, key: Key) -> None:
    wanted = 1 if table.sort_key is None else 2
    if len(key) != wanted or not all(isinstance(part, str) and part for part in key):
        message = f"{table.name} is read by {wanted} strings that are not empty, not by {key!r}."
        raise Refused(message)


def _refuse_owned(table: Table, attributes: Mapping[str, Any]) -> None:
    owned = {"version", "deleted", "ttl"} & set(attributes)
    if owned:
        message = f"{table.name} item: {', '.join(sorted(owned))} belong to the product, use other names."
        raise Refused(message)
