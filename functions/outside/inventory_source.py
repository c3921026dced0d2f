"""The outside inventory system's API: a user's inventory in pages, all of one snapshot, or none of it.

Reading does nothing to the other side, so whatever is not answered may be asked again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, urlencode

from pydantic import BaseModel, Field, ValidationError

from shared.dependency import Dependency
from shared.errors import Ambiguous, DeadLetter, Rejected, RetryLater, Unavailable
from shared.gate import CircuitBreaker, RetryBudget
from shared.rate import Rate

if TYPE_CHECKING:
    from shared.dependency import Reply
    from shared.unit_of_work import UnitOfWork

# The outside system is not ours: what five users' pages ask for does not trouble it. Reading needs no key.
INVENTORY_SYSTEM = Dependency(
    "inventory-system",
    timeout=timedelta(seconds=10),
    rate=Rate(20, burst=40),
    retries=RetryBudget(),
    breaker=CircuitBreaker(),
)
OK, NOT_FOUND, GONE = 200, 404, 410
PAGE_LINES = 500
MOST_LINES = 10_000
MOST_PAGES = 2 * MOST_LINES // PAGE_LINES  # the system may give fewer lines to a page than it is asked for
STARTS = 3  # of a snapshot that changes while it is read
PAGE_SHARE = 1 / 6  # of the job's time: a page takes it at the most, and as much stays for the commit


class Line(BaseModel):
    """How many there are of one thing."""

    sku: Annotated[str, Field(pattern=r"^[!-~]{1,100}$")]
    quantity: Annotated[int, Field(ge=0, lt=10**15)]


class _Page(BaseModel):
    snapshot: Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]
    lines: Annotated[list[Line], Field(max_length=PAGE_LINES)]
    next: Annotated[str, Field(min_length=1, max_length=1000)] | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An inventory as it was at one moment, in the order of its system.

    Attributes:
        name: the same name stands for the same lines.
        lines: None where the caller knows this snapshot already.
    """

    name: str
    lines: tuple[Line, ...] | None


class _Changed(Exception):  # noqa: N818 - nothing erred: the snapshot is another than the one that was begun
    """A later page is of another snapshot."""


def pull(work: UnitOfWork, user_id: str, known: str | None) -> Snapshot | None:
    """A user's inventory, whole; None if the system does not know the user. `known` is the snapshot that is there already.

    Raises:
        Unavailable: no answer, or none that makes sense; asking again is harmless.
        Rejected: the system refuses to tell.
        RetryLater: it changed again and again, or there is too little time.
        DeadLetter: it is too large.
    """
    least = work.time_left() * 2 * PAGE_SHARE
    for _ in range(STARTS):
        try:
            return _snapshot(work, user_id, known, least)
        except _Changed:
            continue
    message = "the inventory changes while it is read"
    raise RetryLater(message)


def _snapshot(work: UnitOfWork, user_id: str, known: str | None, least: timedelta) -> Snapshot | None:
    first = _page(work, user_id, None, least)
    if first is None:
        return None
    if first.snapshot == known:
        return Snapshot(known, None)
    lines = {line.sku: line for line in first.lines}
    number, cursor = len(first.lines), first.next
    for _ in range(MOST_PAGES):
        if cursor is None:
            break
        page = _page(work, user_id, cursor, least)
        if page is None or page.snapshot != first.snapshot:
            raise _Changed
        lines.update((line.sku, line) for line in page.lines)
        number, cursor = number + len(page.lines), page.next
        if number > MOST_LINES:
            break
    if number > MOST_LINES or cursor is not None:
        raise DeadLetter("inventory-too-large", f"over {MOST_LINES} lines, or over {MOST_PAGES} pages")
    if len(lines) != number:
        message = "The inventory system named a thing twice in one snapshot."
        raise Unavailable(message, dependency=INVENTORY_SYSTEM.name)
    return Snapshot(first.snapshot, tuple(lines.values()))


def _page(work: UnitOfWork, user_id: str, cursor: str | None, least: timedelta) -> _Page | None:
    """A page; None if there is none: the user is not known, or the cursor's snapshot is gone."""
    if work.time_left() < least:
        message = "too little time is left for a page and the commit"
        raise RetryLater(message)
    query = urlencode({"limit": PAGE_LINES} if cursor is None else {"limit": PAGE_LINES, "cursor": cursor})
    try:
        reply = work.call(INVENTORY_SYSTEM, "GET", f"/v1/inventories/{quote(user_id, safe='')}?{query}")
    except Ambiguous as error:  # it may have read, which is nothing
        raise Unavailable(str(error), dependency=INVENTORY_SYSTEM.name) from error
    if reply.status == (NOT_FOUND if cursor is None else GONE):
        return None
    if reply.status != OK:
        message = f"The inventory system answered {reply.status}."
        raise Rejected(message, dependency=INVENTORY_SYSTEM.name, status=reply.status)
    return _read(reply)


def _read(reply: Reply) -> _Page:
    try:
        return _Page.model_validate(reply.body, strict=True)
    except ValidationError as error:
        message = "The inventory system answered with a body that is not what it documents."
        raise Unavailable(message, dependency=INVENTORY_SYSTEM.name) from error
