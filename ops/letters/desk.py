"""The desk: looks through a worker's dead-letter queue, and takes what is chosen from it for a moment.

Whoever reads a queue hides its letters from others. So they are hidden shortly, and given back as soon as it is known what they are; a
reader that dies gives them back by the queue's own clock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from ops.letters.dossier import Dossier, read
from shared.errors import Refused, Unavailable
from shared.failpoints import Failpoint, failpoint
from shared.limits import BATCH_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ops.stack.together import Mapper
    from shared.clock import Clock
    from shared.desk.dead_letter_queue import DeadLetterQueue
    from shared.desk.operator_records import OperatorRecords

HIDDEN = timedelta(seconds=60)
BUNCH = 100  # letters whose job records are read together

Chooses = Callable[[Dossier], bool]


@dataclass(slots=True)
class Survey:
    """What was seen, and what of it is still held.

    Attributes:
        dossiers: in the order in which they were received.
        cut: whether there may be more: the limit or the time to read was over.
        gone: message ids of what was deleted meanwhile, so that nobody gives it back.
    """

    dossiers: tuple[Dossier, ...]
    cut: bool
    gone: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Desk:
    """One worker's dead letters.

    Attributes:
        hidden: how long letters are kept from others; half of it is for reading, half to work on what was taken.
        side_by_side: by which calls that do not depend on each other are made. On a FIFO queue all do.
    """

    worker: str
    queue: DeadLetterQueue
    records: OperatorRecords
    clock: Clock
    side_by_side: Mapper = map
    hidden: timedelta = HIDDEN

    @property
    def mapper(self) -> Mapper:
        """How calls are made that change or take letters."""
        return map if self.queue.fifo else self.side_by_side

    def look(self, most: int) -> Survey:
        """See letters, at most so many, and give them back.

        Raises:
            Unavailable: a store did not answer.
        """
        with self.taken(lambda _: False, most, most) as survey:
            return survey

    @contextlib.contextmanager
    def taken(self, chooses: Chooses, most: int, most_read: int | None = None) -> Iterator[Survey]:
        """Take chosen letters, at most so many; they are hidden from others while the block lasts, and given back after it.

        What is not chosen is given back before the block begins. What the block has deleted is not there to be given back.

        Args:
            chooses: tells what is chosen.
            most: letters to take.
            most_read: letters to read; by default all that there are until enough are chosen. The survey is then of all
                that was read, not only of what was chosen.

        Raises:
            Unavailable: a store did not answer.
        """
        held: dict[str, Dossier] = {}
        survey = Survey((), cut=True)
        try:
            names, survey.cut = self._read(chooses, most, most_read, held)
            self._give_back([dossier for name, dossier in held.items() if name not in names])
            chosen = {name: held[name] for name in names}
            survey.dossiers = tuple(chosen.values() if most_read is None else held.values())
            held = chosen
            failpoint(Failpoint.LETTERS_TAKEN)
            yield survey
        finally:
            self._give_back([dossier for name, dossier in held.items() if name not in survey.gone])

    def _read(
        self, chooses: Chooses, most: int, most_read: int | None, held: dict[str, Dossier]
    ) -> tuple[list[str], bool]:
        """Read until enough are chosen, or nothing new comes: the names of the chosen, and whether there may be more.

        What is received is noted in `held` at once, so that it is given back whatever happens.
        """
        deadline = self.clock.monotonic() + self.hidden.total_seconds() / 2
        chosen: list[str] = []
        while len(chosen) < most and (most_read is None or len(held) < most_read):
            if self.clock.monotonic() > deadline:
                return chosen, True
            # At first as many as are wanted: where those are not chosen, more is looked at together.
            left = most_read - len(held) if most_read is not None else BUNCH if held else most
            fresh, is_last = self._bunch(min(left, BUNCH), held, deadline)
            found = self.records.views([dossier.record for dossier in fresh if dossier.record is not None])
            for dossier in fresh:
                known = dossier.beside(found.get(dossier.record or ""))
                held[dossier.delivery.message_id] = known
                if len(chosen) < most and chooses(known):
                    chosen.append(dossier.delivery.message_id)
            if is_last:
                return chosen, False
        return chosen, True

    def _bunch(self, most: int, held: dict[str, Dossier], deadline: float) -> tuple[list[Dossier], bool]:
        """Some new letters, and whether there are no more."""
        fresh: dict[str, Dossier] = {}
        while (missing := most - len(fresh)) > 0 and self.clock.monotonic() <= deadline:
            is_last = False
            # The first alone tells whether there are any: side by side ten would ask an empty queue.
            times = -(-missing // BATCH_ENTRIES) if fresh else 1
            for received in self.mapper(self.queue.receive, [self.hidden] * times):
                is_new = False
                for delivery in received:
                    name = delivery.message_id
                    if name in held:  # received once more: the newest receipt is the one that counts
                        held[name] = replace(held[name], delivery=delivery)
                        if name in fresh:
                            fresh[name] = held[name]
                        continue
                    is_new = True
                    fresh[name] = held[name] = read(self.worker, delivery)
                is_last = is_last or not is_new
                if is_last and self.mapper is map:
                    break  # side by side the other calls are made already, and what they took must be noted
            if is_last:
                return list(fresh.values()), True
        return list(fresh.values()), False

    def _give_back(self, dossiers: list[Dossier]) -> None:
        if dossiers:
            with contextlib.suppress(Unavailable, Refused):  # they come back by themselves
                self.queue.give_back([dossier.delivery for dossier in dossiers])
