"""The twin in memory of a dead-letter queue: the dead letters of a memory queue, with receipts and visibility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.delivery import read_event

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from shared.backends.memory.queue import Kept, MemoryQueue
    from shared.delivery import Delivery
    from shared.desk.dead_letter_queue import Copy, Redrive

MOST = 10


@dataclass
class MemoryDeadLetters:
    """The dead letters of a queue.

    Attributes:
        moves: a task of AWS's own, where a test says that one runs.
    """

    queue: MemoryQueue
    moves: Redrive | None = None

    @property
    def fifo(self) -> bool:
        """Whether it is a FIFO queue."""
        return self.queue.fifo

    def receive(self, hidden: timedelta) -> Sequence[Delivery]:
        """Receive at most ten letters."""
        with self.queue.lock:
            now = self.queue.clock.monotonic()
            busy = {letter.group for letter in self.queue.dead if letter.visible_at > now} if self.fifo else set()
            visible = [each for each in self.queue.dead if each.visible_at <= now and each.group not in busy][:MOST]
            for letter in visible:
                letter.receives += 1
                letter.receipt = f"{letter.id}/dead/{letter.receives}"
                letter.visible_at = now + hidden.total_seconds()
            return read_event({"Records": [letter.record for letter in visible]}) if visible else ()

    def give_back(self, letters: Sequence[Delivery]) -> None:
        """Let others see letters at once."""
        with self.queue.lock:
            for letter in self._held(letters):
                letter.visible_at = self.queue.clock.monotonic()

    def send(self, copies: Sequence[Copy]) -> Sequence[str]:
        """Send copies to the queue."""
        return [self.queue.take_copy(copy) for copy in copies]

    def delete(self, letters: Sequence[Delivery]) -> frozenset[str]:
        """Delete letters by their receipts; an old receipt deletes nothing."""
        with self.queue.lock:
            held = self._held(letters)
            gone = {id(letter) for letter in held}
            self.queue.dead[:] = [letter for letter in self.queue.dead if id(letter) not in gone]
            return frozenset(letter.id for letter in held)

    def depth(self) -> int:
        """How many letters there are."""
        return len(self.queue.dead)

    def redrive(self) -> Redrive | None:
        """The task of AWS's own."""
        return self.moves

    def cancel(self, redrive: Redrive) -> None:
        """Stop that task."""
        if self.moves == redrive:
            self.moves = None

    def _held(self, letters: Sequence[Delivery]) -> list[Kept]:
        receipts = {letter.receipt_handle for letter in letters}
        return [letter for letter in self.queue.dead if letter.receipt in receipts]
