"""Replays dead letters: makes their jobs ready, sends copies, deletes what was sent. In this order, so that a crash repeats and never loses.

1. The job is accepted again, under the death that its copy will carry. Died here: the letter is still there, and the job is watched.
2. The copy is sent. Died here: the letter is there, too; the next replay sends a second copy, and one key is one job.
3. What SQS named as sent is deleted, by its receipt.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from ops.letters.verdict import MOST_DEATHS, Fate, Finish, Leave, Reopen, Send, verdict_on
from shared.dead_letter import ORIGINAL_ATTRIBUTES, folded_in, reopening
from shared.delivery import DEAD_LETTER_ATTRIBUTE, ENCODING_ATTRIBUTE
from shared.desk.dead_letter_queue import Copy
from shared.desk.operator_records import TOGETHER, Reopening
from shared.errors import Refused, Unavailable
from shared.failpoints import Failpoint, failpoint
from shared.limits import BATCH_ENTRIES, MESSAGE_ATTRIBUTES, MESSAGE_BYTES
from shared.producer import NotTaken
from shared.strict_json import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ops.letters.dossier import Dossier
    from ops.stack.together import Mapper
    from shared.clock import Clock
    from shared.delivery import Delivery
    from shared.desk.dead_letter_queue import DeadLetterQueue
    from shared.desk.operator_records import OperatorRecords


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of one letter.

    Attributes:
        death: under which its copy was sent; 0 where none was.
        why: SQS's code, where it did not do it.
    """

    dossier: Dossier
    fate: Fate
    death: int = 0
    why: str | None = None


Entry = tuple["Dossier", Copy, int]  # with the death that the copy carries


def copy_of(dossier: Dossier, death: int) -> Copy:
    """The message anew: body, attributes, group and trace as they are in the letter, and the mark of its death instead of the reason."""
    letter = dossier.delivery
    attributes = dict(letter.attributes)
    mark = {"stringValue": reopening(death)[DEAD_LETTER_ATTRIBUTE], "dataType": "String"}
    folded = folded_in(letter)
    if DEAD_LETTER_ATTRIBUTE not in letter.attributes and len(attributes) >= MESSAGE_ATTRIBUTES:
        folded = {name: value for name, value in attributes.items() if name != ENCODING_ATTRIBUTE}
        attributes = {name: value for name, value in attributes.items() if name == ENCODING_ATTRIBUTE}
    if folded:
        # Ten attributes and the mark are more than SQS takes: they stay folded into it.
        mark["stringValue"] = json_text({"death": death, ORIGINAL_ATTRIBUTES: folded})
    attributes[DEAD_LETTER_ATTRIBUTE] = mark
    # Known by the death, since a FIFO queue swallows what it was sent under the same name in the last five minutes.
    # Of two letters with one key the second may be of another payload: it is not swallowed either.
    name = hashlib.sha256(f"{letter.message_id}/{death}".encode()).hexdigest()
    return Copy(letter.body, attributes, letter.group, letter.trace, name)


@dataclass(frozen=True, slots=True)
class Sending:
    """Replays letters of one worker.

    Attributes:
        by: who does it, for the job record.
        most_deaths: a letter that died more often is left; None if people insist.
        wait_for: called with a number of letters before they are sent; it may wait.
        mapper: by which batches are sent; FIFO queues leave it out.
    """

    queue: DeadLetterQueue
    records: OperatorRecords
    clock: Clock
    by: str
    most_deaths: int | None = MOST_DEATHS
    wait_for: Callable[[int], None] = lambda _: None
    mapper: Mapper = map

    def replay(self, dossiers: Sequence[Dossier], gone: set[str]) -> list[Replayed]:
        """Replay letters that are held, in their order; notes in `gone` those that are deleted.

        Raises:
            Unavailable: the job records did not answer; nothing was sent.
        """
        now = self.clock.now()
        left: list[Replayed] = []
        finish: list[Dossier] = []
        reopen: list[tuple[Dossier, int]] = []
        deaths: dict[str, int] = {}
        for dossier in dossiers:
            match verdict_on(dossier, now, self.most_deaths):
                case Leave(fate=fate):
                    left.append(Replayed(dossier, fate))
                case Finish():
                    finish.append(dossier)
                case Send(death=death):
                    deaths[dossier.delivery.message_id] = death
                case Reopen(death=death):
                    reopen.append((dossier, death))
                case verdict:
                    assert_never(verdict)
        if reopen:
            asked = [Reopening(dossier.view, death, self.by) for dossier, death in reopen if dossier.view is not None]
            parts = [asked[place : place + TOGETHER] for place in range(0, len(asked), TOGETHER)]
            ready = frozenset[str]().union(*self.mapper(lambda part: self.records.reopen(part, now), parts))
            failpoint(Failpoint.REOPENED)
            for dossier, death in reopen:
                if dossier.record in ready:
                    deaths[dossier.delivery.message_id] = death
                else:
                    left.append(Replayed(dossier, Fate.CHANGED))
        to_send = [(d, deaths[d.delivery.message_id]) for d in dossiers if d.delivery.message_id in deaths]
        return [*left, *self._finished(finish, gone), *self._sent(to_send, gone)]

    def _sent(self, letters: Sequence[tuple[Dossier, int]], gone: set[str]) -> Iterator[Replayed]:
        """Send and delete, ten at a time. On a FIFO queue a group stands still behind a letter of it that was not sent."""
        entries = [(dossier, copy_of(dossier, death), death) for dossier, death in letters]
        if not self.queue.fifo:
            for replayed in self.mapper(lambda batch: self._one_batch(batch, gone), self._paced(_batches(entries))):
                yield from replayed
            return
        stopped: set[str] = set()
        for batch in _batches(entries, fifo=True):
            going = [entry for entry in batch if entry[0].delivery.group not in stopped]
            yield from (Replayed(d, Fate.BEHIND) for d, _, _ in batch if d.delivery.group in stopped)
            for replayed in self._one_batch(next(self._paced([going])), gone):
                if replayed.fate is Fate.NOT_SENT and replayed.dossier.delivery.group is not None:
                    stopped.add(replayed.dossier.delivery.group)
                yield replayed

    def _paced(self, batches: Iterable[list[Entry]]) -> Iterator[list[Entry]]:
        for batch in batches:
            self.wait_for(len(batch))
            yield batch

    def _one_batch(self, batch: Sequence[Entry], gone: set[str]) -> list[Replayed]:
        """Send at most ten, and delete those that SQS names as sent."""
        if not batch:
            return []
        answers = self._answers([copy for _, copy, _ in batch])
        failpoint(Failpoint.COPIES_SENT)
        sent = [entry for entry, answer in zip(batch, answers, strict=True) if not isinstance(answer, NotTaken)]
        deleted = self._deleted([dossier.delivery for dossier, _, _ in sent], gone)
        replayed = []
        for (dossier, _, death), answer in zip(batch, answers, strict=True):
            if isinstance(answer, NotTaken):
                replayed.append(Replayed(dossier, Fate.NOT_SENT, why=answer.code))
            elif dossier.delivery.message_id in deleted:
                replayed.append(Replayed(dossier, Fate.REPLAYED, death))
            else:
                replayed.append(Replayed(dossier, Fate.NOT_DELETED, death))
        return replayed

    def _finished(self, dossiers: Sequence[Dossier], gone: set[str]) -> Iterator[Replayed]:
        for place in range(0, len(dossiers), BATCH_ENTRIES):
            batch = dossiers[place : place + BATCH_ENTRIES]
            deleted = self._deleted([dossier.delivery for dossier in batch], gone)
            for dossier in batch:
                is_deleted = dossier.delivery.message_id in deleted
                yield Replayed(dossier, Fate.FINISHED if is_deleted else Fate.NOT_DELETED)

    def _answers(self, copies: Sequence[Copy]) -> Sequence[str | NotTaken]:
        try:
            return self.queue.send(copies)
        except Unavailable as error:
            return [NotTaken(str(error), final=False)] * len(copies)
        except Refused as error:
            if len(copies) == 1:
                return [NotTaken(str(error), final=True)]
            return [self._answers([copy])[0] for copy in copies]  # it is about one of them, perhaps

    def _deleted(self, letters: Sequence[Delivery], gone: set[str]) -> frozenset[str]:
        if not letters:
            return frozenset()
        try:
            deleted = self.queue.delete(letters)
        except (Unavailable, Refused):
            return frozenset()  # the next replay finishes it
        gone |= deleted
        failpoint(Failpoint.LETTERS_DELETED)
        return deleted


def _batches(entries: Sequence[Entry], *, fifo: bool = False) -> Iterator[list[Entry]]:
    """By ten and by 1 MiB, in order. On a FIFO queue one letter of a group in each, since SQS may take the second and not the first."""
    batch: list[Entry] = []
    weight = 0
    groups: set[str | None] = set()
    for entry in entries:
        size = _size(entry[1])
        group = entry[1].group
        if batch and (
            len(batch) == BATCH_ENTRIES
            or weight + size > MESSAGE_BYTES
            or (fifo and group is not None and group in groups)
        ):
            yield batch
            batch, weight, groups = [], 0, set()
        batch.append(entry)
        weight += size
        groups.add(group)
    if batch:
        yield batch


def _size(copy: Copy) -> int:
    """Bytes that SQS counts, and a little more: a binary value is longer as text."""
    attributes = sum(
        len(name.encode())
        + len(str(value.get("dataType")))
        + len(str(value.get("stringValue") or value.get("binaryValue") or "").encode())
        for name, value in copy.attributes.items()
    )
    return len(copy.body.encode(errors="surrogatepass")) + attributes
