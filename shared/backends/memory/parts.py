"""Parts in memory: their blocks, the parents that wait and are woken, and the stream of their ends."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from shared.backends.memory.job_records import MemoryRecords
from shared.backends.memory.outbox import MemoryOutbox
from shared.errors import ClaimLost, Conflict
from shared.job_record import SYSTEM, JobView, Status, operation_id
from shared.parts import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from shared.outbox import Posting
    from shared.parts import Ended, Part, Split


@dataclass
class Block:
    """The parts of one checkpoint, and how those ended that have."""

    job_type: str
    first: int
    count: int
    states: dict[int, str] = field(default_factory=dict)
    changes: int = 0


@dataclass(kw_only=True)
class MemoryParts(MemoryRecords, MemoryOutbox):
    """The job records as those see them who split jobs and count their parts."""

    blocks: dict[str, Block] = field(default_factory=dict)

    def put_parts(self, parts: Sequence[Part], now: datetime) -> None:
        """Accept the parts of a checkpoint; whoever does it holds the lock."""
        if not parts:
            return
        block = parts[0].place.block
        if block in self.blocks or any(part.record in self.records for part in parts):
            message = "A part is there already."
            raise Conflict(message)
        self.blocks[block] = Block(parts[0].job_type, parts[0].place.number, len(parts))
        for part in parts:
            names = {
                "owner": SYSTEM,
                "job_type": part.job_type,
                "idempotency_key": part.idempotency_key,
                "operation_id": operation_id(part.record),
            }
            self.records[part.record] = JobView(
                part.record,
                Status.ACCEPTED,
                0,
                part.fingerprint,
                trace=part.trace,
                version=part.version,
                look_at=now + self.lost_after,
                payload=part.payload,
                place=part.place,
                names=names,
            )
            self.put_posting(part.posting, now)

    def note(self, ended: Sequence[Ended]) -> None:
        """Note the ends, all of one block in one write."""
        with self.lock:
            for each in ended:
                if each.place.block in self.blocks:
                    self.blocks[each.place.block].states[each.place.number] = each.state.value
            for name in {each.place.block for each in ended} & self.blocks.keys():
                self.blocks[name].changes += 1

    def tally(self, split: Split) -> Tally:
        """Count the ends."""
        with self.lock:
            tally = Tally(split.parts)
            for block in self._blocks_of(split):
                tally = tally.and_(list(block.states.values()), block.changes)
            return tally

    def tell(self, parent: str, split: Split, tally: Tally) -> None:
        """Have the parent's record tell the tally."""
        with self.lock:
            view = self.records.get(parent)
            if view is None or view.split is None or view.split.name != split.name or view.status is Status.RUNNING:
                return
            if view.tally is None or view.tally.changes < tally.changes:
                self.records[parent] = replace(view, tally=tally)

    def wait(self, parent: JobView, look_at: datetime, now: datetime) -> None:
        """Have the parent wait for its parts."""
        del now
        with self.lock:
            view = self.records.get(parent.record)
            if view is not None and view.token == parent.token and view.status is Status.WAITING:
                return
            if view is None or view.token != parent.token or view.status is not Status.RUNNING:
                raise ClaimLost(_LOST)
            self.records[parent.record] = replace(
                view, status=Status.WAITING, attempts=view.attempts - 1, claim_until=None, look_at=look_at
            )

    def wake(self, parent: JobView, posting: Posting, now: datetime) -> None:
        """Send the message of a parent that waits, together with having it wait no more."""
        with self.lock:
            view = self._waiting(parent)
            if posting.id in self.outbox:
                raise ClaimLost(_LOST)
            self.put_posting(posting, now)
            self.records[parent.record] = replace(
                view, status=Status.RETRYING, not_before=now, look_at=now + self.lost_after
            )

    def look_again(self, parent: JobView, look_at: datetime) -> None:
        """Look at a parent that waits then."""
        with self.lock:
            self.records[parent.record] = replace(self._waiting(parent), look_at=look_at)

    def open_parts(self, split: Split) -> Iterator[JobView]:
        """The parts whose end is not noted."""
        return self._parts(split, only_open=True)

    def all_parts(self, split: Split) -> Iterator[JobView]:
        """All parts."""
        return self._parts(split, only_open=False)

    def _parts(self, split: Split, *, only_open: bool) -> Iterator[JobView]:
        with self.lock:
            found = [
                self.records[split.record(block.job_type, number)]
                for block in self._blocks_of(split)
                for number in range(block.first, block.first + block.count)
                if not (only_open and number in block.states)
            ]
        yield from found

    def _blocks_of(self, split: Split) -> Iterator[Block]:
        return (self.blocks[split.block(number)] for number in range(split.blocks))

    def _waiting(self, parent: JobView) -> JobView:
        view = self.records.get(parent.record)
        if view is None or view.status is not Status.WAITING:
            raise ClaimLost(_LOST)
        return view


_LOST = "The job is held by another attempt, or waits no more."
