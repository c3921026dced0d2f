"""Synchronising inventories: a user's is copied whole from the outside system, one at a time, and never seen half.

It is kept in parts beside a head that names the snapshot; one transaction changes them all.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, cast

from pydantic import BaseModel, Field

from functions.outside.inventory_source import INVENTORY_SYSTEM, MOST_LINES, Line, pull
from functions.views.shown import ABSENT, versioned
from shared.consumer import consume
from shared.errors import StoreUnavailable
from shared.job import job
from shared.outcome import Failed
from shared.payload import Payload
from shared.retry import Retry
from shared.table import Table
from shared.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shared.caching.store import Loaded
    from shared.item import Item, ItemSource
    from shared.limits import Value
    from shared.unit_of_work import UnitOfWork

INVENTORY = Table("inventory", key="user_id", sort_key="part")
HEAD = "head"
LOOKS = 3
PART_LINES = 1000  # of 140 bytes at the most, far below what an item holds
MOST_PARTS = -(-MOST_LINES // PART_LINES)


class SyncInventory(Payload):
    """Bring the copy of a user's inventory up to date."""

    user_id: Annotated[str, Field(min_length=1, max_length=200)]


class InventorySynced(BaseModel):
    """The copy is that of the snapshot; `version` is its own."""

    user_id: str
    snapshot: str
    lines: int
    version: int


@job(
    "sync-inventory",
    version=1,
    timeout=timedelta(seconds=60),  # twenty pages, at their usual pace
    max_latency=timedelta(minutes=3),
    # A snapshot that changes, or a system that rests: it is worth another look within minutes, then people look.
    retry=Retry(max_attempts=6, base=timedelta(seconds=5), cap=timedelta(minutes=2)),
    lock=lambda payload: f"inventory/{payload.user_id}",
    heartbeat=timedelta(seconds=10),  # a crash is repaired in half a minute, not when the long timeout is over
    uses=(INVENTORY.read_write, INVENTORY_SYSTEM),
    open_to_clients=True,
)
def sync_inventory(payload: SyncInventory, work: UnitOfWork) -> InventorySynced | Failed:
    """Copy the inventory; a snapshot that is there already is written no second time.

    The head is read first: whoever synchronises meanwhile all the same makes this commit fail, and it begins anew.
    """
    user = payload.user_id
    head = work.read(INVENTORY, user, HEAD)
    pulled = pull(work, user, None if head is None else head.text("snapshot"))
    if pulled is None:
        return Failed("unknown_user", "the inventory system does not know the user")
    lines, version = _count(head, "lines"), 0 if head is None else head.version
    if pulled.lines is not None:
        lines, version = len(pulled.lines), _write(work, user, head, pulled.name, pulled.lines)
    work.invalidate(inventory_tag(user), version=version)
    return InventorySynced(user_id=user, snapshot=pulled.name, lines=lines, version=version)


def _write(work: UnitOfWork, user: str, head: Item | None, snapshot: str, lines: Sequence[Line]) -> int:
    """Stage the parts and the head; give the version that the head will have."""
    chunks = [lines[begin : begin + PART_LINES] for begin in range(0, len(lines), PART_LINES)]
    for number in range(max(len(chunks), _count(head, "parts"))):
        part = work.read(INVENTORY, user, part_name(number))
        if number >= len(chunks):
            if part is not None:
                work.delete(part)
            continue
        content: dict[str, Value] = {"snapshot": snapshot, "lines": [line.model_dump() for line in chunks[number]]}
        if part is None:
            work.create(INVENTORY, user_id=user, part=part_name(number), **content)
        else:
            work.update(part, **content)
    content = {"snapshot": snapshot, "parts": len(chunks), "lines": len(lines)}
    if head is None:
        return work.create(INVENTORY, user_id=user, part=HEAD, **content).version
    work.update(head, **content)
    return head.version + 1


def load_inventory(source: ItemSource, user: str) -> Loaded:
    """The copy of a user's inventory, of one snapshot: a look that meets a commit half done is taken again.

    Raises:
        Unavailable: the store did not answer, or each look met another commit.
    """
    for _ in range(LOOKS):
        items = {str(stored.attributes["part"]): stored for stored in source.read_all(INVENTORY, user, MOST_PARTS + 1)}
        head = items.pop(HEAD, None)
        if head is None and not items:
            return ABSENT
        if head is None:
            continue
        snapshot, parts = head.attributes["snapshot"], [items[name].attributes for name in sorted(items)]
        if len(parts) == head.attributes["parts"] and all(part["snapshot"] == snapshot for part in parts):
            lines = [line for part in parts for line in cast("Sequence[object]", part["lines"])]
            return versioned(head.version, {"user_id": user, "snapshot": snapshot, "lines": lines})
    message = "The inventory is written again and again."
    raise StoreUnavailable(message)


def part_name(number: int) -> str:
    """The sort key of a part, which sorts as its number does."""
    return f"part-{number:02}"


def inventory_tag(user_id: str) -> str:
    """The cache tag of a user's inventory."""
    return f"inventory/{user_id}"


def _count(head: Mapping[str, Value] | None, name: str) -> int:
    found = 0 if head is None else head[name]
    return found if isinstance(found, int) else 0


# The outside system is not ours: five at a time do not trouble it, and a page each is what one user's pace asks for.
WORKER = Worker("inventory", jobs=(sync_inventory,), max_concurrency=5)
handler = consume(WORKER)
