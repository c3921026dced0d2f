"""Business items in memory: conditional writes on their versions, as the table has them."""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from shared.errors import Conflict
from shared.item import Create, Delete, Replace, Stored, Unchanged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.item import Key, Write
    from shared.table import Table


@dataclass(kw_only=True)
class MemoryItems:
    """Items by table and key. Whoever demands and applies several writes holds the lock over all of them."""

    items: dict[tuple[str, Key], Stored] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def read(self, table: Table, key: Key) -> Stored | None:
        """Read an item or its tombstone."""
        with self.lock:
            return copy.deepcopy(self.items.get((table.name, key)))

    def read_many(self, table: Table, keys: Sequence[Key]) -> dict[Key, Stored]:
        """Read items by their keys."""
        found = {key: self.read(table, key) for key in keys}
        return {key: stored for key, stored in found.items() if stored is not None and not stored.deleted}

    def read_all(self, table: Table, partition: str, most: int) -> list[Stored]:
        """Read the items of a partition."""
        with self.lock:
            keys = sorted(key for name, key in self.items if name == table.name and key[0] == partition)
            return list(self.read_many(table, keys).values())[:most]

    def demand(self, write: Write) -> None:
        """Return if the write's condition holds.

        Raises:
            Conflict: it does not.
        """
        stored = self.items.get((write.table.name, write.key))
        match write:
            case Create():
                fits = stored is None or stored.deleted
            case Replace() | Delete():
                fits = stored is not None and stored.version == write.seen
            case Unchanged():
                fits = (None if stored is None else stored.version) == write.seen
            case _:
                assert_never(write)
        if not fits:
            message = f"{write.table.name} {'/'.join(write.key)} has changed since it was read."
            raise Conflict(message)

    def apply(self, write: Write) -> None:
        """Do the write, whose condition holds."""
        place = (write.table.name, write.key)
        stored = self.items.get(place)
        match write:
            case Create(attributes=attributes):
                self.items[place] = Stored(copy.deepcopy(dict(attributes)), 1 if stored is None else stored.version + 1)
            case Replace(attributes=attributes, seen=seen, changed=changed):
                kept = {} if stored is None or stored.deleted else dict(stored.attributes)
                written = {name: value for name, value in attributes.items() if name in changed}
                keys = dict(zip(write.table.key_names, write.key, strict=True))
                self.items[place] = Stored(copy.deepcopy({**kept, **written, **keys}), seen + 1)
            case Delete(seen=seen):
                keys = dict(zip(write.table.key_names, write.key, strict=True))
                self.items[place] = Stored(keys, seen + 1, deleted=True)
            case Unchanged():
                pass
            case _:
                assert_never(write)
