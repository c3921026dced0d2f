"""What a unit of work stages for one transaction: of each item read one conditional write, and tags, messages, settled jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shared.errors import Refused
from shared.item import Create, Delete, Item, Replace, Unchanged, Write
from shared.limits import Value, check_item
from shared.work.transaction import check_transaction

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from shared.commit import Reconciliation
    from shared.item import ItemStore, Key
    from shared.outbox import Posting
    from shared.parts import Part
    from shared.table import Table
    from shared.tag import Tag


@dataclass(slots=True)
class _Slot:
    """What is known and staged of one item."""

    table: Table
    key: Key
    seen: int | None
    item: Item | None
    staged: Write | None = None
    size: int = 0  # in bytes, of what is staged


@dataclass(slots=True)
class Staging:
    """The items of one unit of work, each once."""

    items: ItemStore
    _slots: dict[tuple[str, Key], _Slot] = field(default_factory=dict)

    def read(self, table: Table, key: Key) -> Item | None:
        """Read an item once; its version is remembered."""
        if len(key) != len(table.key_names) or not all(isinstance(part, str) and part for part in key):
            message = f"{table.name} is read by {len(table.key_names)} strings that are not empty, not by {key!r}."
            raise Refused(message)
        slot = self._slots.get((table.name, key))
        if slot is None:
            stored = self.items.read(table, key)
            alive = stored is not None and not stored.deleted
            item = Item(table, key, stored.attributes, stored.version) if stored is not None and alive else None
            slot = _Slot(table, key, seen=None if stored is None else stored.version, item=item)
            self._slots[table.name, key] = slot
        return slot.item

    def create(self, table: Table, attributes: Mapping[str, Value]) -> Item:
        """Stage a new item."""
        size = check_item(attributes, table.key_names, f"{table.name} item")
        _refuse_owned(table, attributes)
        key = tuple(str(attributes[name]) for name in table.key_names)
        slot = self._slots.setdefault((table.name, key), _Slot(table, key, seen=None, item=None))
        if slot.item is not None:
            message = f"{table.name} {'/'.join(key)} exists: update it instead."
            raise Refused(message)
        if slot.seen is None:
            slot.staged = Create(table, key, attributes)
        else:
            # Over its own tombstone, as read.
            slot.staged = Replace(table, key, attributes, slot.seen, frozenset(attributes))
        slot.item, slot.size = Item(table, key, attributes, (slot.seen or 0) + 1), size
        return slot.item

    def update(self, item: Item, changes: Mapping[str, Value]) -> Item:
        """Stage changed attributes."""
        slot = self._own(item)
        _refuse_owned(item.table, changes)
        attributes = {**item, **changes}
        if tuple(attributes[name] for name in item.table.key_names) != item.key:
            message = f"{item.table.name} {'/'.join(item.key)}: a key never changes; create another item."
            raise Refused(message)
        slot.size = check_item(attributes, item.table.key_names, f"{item.table.name} item")
        match slot.staged:
            case Create():
                slot.staged = Create(item.table, item.key, attributes)
            case Replace(changed=before):
                slot.staged = Replace(item.table, item.key, attributes, slot.seen or 0, before | changes.keys())
            case _:
                slot.staged = Replace(item.table, item.key, attributes, slot.seen or 0, frozenset(changes))
        slot.item = Item(item.table, item.key, attributes, item.version)
        return slot.item

    def delete(self, item: Item, kept_until: datetime) -> None:
        """Stage a deletion; its tombstone is kept until then."""
        slot = self._own(item)
        if slot.seen is None:  # created here: nothing is written, but it must not be there either
            slot.staged, slot.item, slot.size = None, None, 0
            return
        slot.staged = Delete(item.table, item.key, slot.seen, kept_until)
        slot.item, slot.size = None, 0

    @property
    def size(self) -> int:
        """How many bytes the items have that are created or changed, as they will be."""
        return sum(slot.size for slot in self._slots.values())

    @property
    def writes(self) -> tuple[Write, ...]:
        """One conditional write for each item read or staged."""
        return tuple(slot.staged or Unchanged(slot.table, slot.key, slot.seen) for slot in self._slots.values())

    @property
    def changes(self) -> int:
        """How many items are created, changed or deleted."""
        return sum(slot.staged is not None for slot in self._slots.values())

    def _own(self, item: Item) -> _Slot:
        slot = self._slots.get((item.table.name, item.key))
        if slot is None:
            message = f"{item.table.name} {'/'.join(item.key)} was not read or created by this unit of work: read it."
            raise Refused(message)
        if slot.item is not item:
            message = f"{item.table.name} {'/'.join(item.key)} was changed since: go on with what update() gave back."
            raise Refused(message)
        return slot


@dataclass(slots=True)
class Staged:
    """All that the next transaction of a unit of work does."""

    items: Staging
    _tags: dict[str, Tag] = field(default_factory=dict)
    _postings: list[Posting] = field(default_factory=list)
    _reconciliations: list[Reconciliation] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    def tag(self, tag: Tag) -> None:
        """Have a tag dropped after it."""
        self._tags[tag.name] = tag.joined(self._tags.get(tag.name, tag))

    def post(self, posting: Posting) -> None:
        """Have a message sent."""
        self._postings.append(posting)

    def settle(self, reconciliation: Reconciliation) -> None:
        """Settle an unknown job in it.

        Raises:
            Refused: it is settled here already.
        """
        if any(known.record == reconciliation.record for known in self._reconciliations):
            message = "The unknown job is settled twice in this unit of work: keep one."
            raise Refused(message)
        self._reconciliations.append(reconciliation)

    @property
    def tags(self) -> tuple[Tag, ...]:
        """Tags to invalidate after it."""
        return tuple(self._tags.values())

    @property
    def postings(self) -> tuple[Posting, ...]:
        """Messages to send."""
        return tuple(self._postings)

    @property
    def reconciliations(self) -> tuple[Reconciliation, ...]:
        """Unknown jobs to settle."""
        return tuple(self._reconciliations)

    @property
    def entries(self) -> int:
        """How many places of a transaction are taken beside those of parts and of the job's record."""
        return len(self.items.writes) + len(self._postings) + len(self._reconciliations)

    @property
    def others(self) -> int:
        """How much is staged beside parts, and would be lost without a commit."""
        return self.items.changes + len(self._postings) + len(self._reconciliations) + len(self._tags)

    @property
    def writes(self) -> tuple[Write, ...]:
        """Conditional writes, one for each item read or staged.

        Raises:
            Refused: all of it does not fit into one transaction.
        """
        writes = self.items.writes
        check_transaction(len(writes), self.items.size, self._postings, self._reconciliations, self.parts)
        return writes


def _refuse_owned(table: Table, attributes: Mapping[str, Any]) -> None:
    owned = {"version", "deleted", "ttl"} & set(attributes)
    if owned:
        message = f"{table.name} item: {', '.join(sorted(owned))} belong to the product, use other names."
        raise Refused(message)
