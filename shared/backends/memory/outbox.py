"""The outbox in memory: what is posted, sent and parked."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from shared.backends.dynamodb.outbox import shard_of
from shared.outbox import Overdue, due_at, left_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from shared.outbox import Posting


@dataclass(kw_only=True)
class MemoryOutbox:
    """Postings by id, and what became of them."""

    outbox: dict[str, Posting] = field(default_factory=dict)
    posted: dict[str, datetime] = field(default_factory=dict)
    sent: dict[str, datetime] = field(default_factory=dict)
    parked: dict[str, str] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def post(self, posting: Posting, now: datetime) -> None:
        """Have a message sent, once under its id."""
        with self.lock:
            if posting.id not in self.outbox:
                self.put_posting(posting, now)

    def overdue(self, shard: int, before: datetime, now: datetime) -> Iterator[Overdue]:
        """What waits since before that moment."""
        with self.lock:
            waiting = sorted(
                (due_at(self.outbox[name], since), name)
                for name, since in self.posted.items()
                if due_at(self.outbox[name], since) < before
                and name not in self.sent
                and name not in self.parked
                and shard_of(self.outbox[name].lane) == shard
            )
        for since, name in waiting:
            posting = self.outbox[name]
            yield Overdue(replace(posting, delay=left_of(posting, self.posted[name], now)), since)

    def lane(self, name: str) -> Iterator[Posting]:
        """The ordered postings of a lane that wait, in the order of their commits."""
        with self.lock:
            waiting = [
                posting
                for posting in self.outbox.values()
                if posting.ordered
                and posting.lane == name
                and posting.id not in self.sent
                and posting.id not in self.parked
            ]
        yield from sorted(waiting, key=lambda posting: self.posted[posting.id])

    def park(self, posting: Posting, reason: str) -> None:
        """Keep it with its reason."""
        with self.lock:
            if posting.id in self.outbox:
                self.parked.setdefault(posting.id, reason)

    def mark_sent(self, posting: Posting, now: datetime) -> None:
        """Note that a posting was sent."""
        with self.lock:
            if posting.id in self.outbox:
                self.sent.setdefault(posting.id, now)

    def put_posting(self, posting: Posting, now: datetime) -> None:
        """Put it there, as a part of what else is written."""
        self.outbox[posting.id] = posting
        self.posted[posting.id] = now
