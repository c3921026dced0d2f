"""What a unit of work offers to long and big jobs: checkpoints, progress, and parts. `UnitOfWork` has it all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from shared.errors import PartsUnderWay, Refused
from shared.job_record import operation_id
from shared.parts import PARTS_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import timedelta

    from shared.job import Job
    from shared.limits import Value
    from shared.message import Message
    from shared.parts import Tally
    from shared.payload import Payload
    from shared.work.calls import Calls
    from shared.work.splitting import PartResult
    from shared.work.staging import Staged
    from shared.work.steps import Steps

P = TypeVar("P", bound="Payload")


class LongWork:
    """The part of a unit of work that goes beyond one transaction and one attempt."""

    __slots__ = ()

    if TYPE_CHECKING:  # what the unit of work has
        calls: Calls
        steps: Steps
        staged: Staged

        def named(self, message: Message) -> Message:
            """The message as it is sent from here."""
            ...

        def _check_guards(self) -> None: ...

        def _begin_step(self) -> None: ...

    @property
    def operation_id(self) -> str:
        """The name under which people and clients see the job: a good beginning for the names of what it makes."""
        return operation_id(self.steps.view.record)

    @property
    def last_checkpoint(self) -> Mapping[str, Any] | None:
        """The state of the job's last checkpoint, of this attempt or an earlier one; None before the first.

        It may have been written by the code of an earlier deploy.
        """
        return self.steps.last

    def checkpoint(self, state: Mapping[str, Value], *, needs: timedelta | None = None) -> None:
        """Commit what is staged, with the job still held: whoever takes it over goes on from this state.

        What was read before is forgotten: read it anew, its version has changed. The tags are dropped right after the
        commit. With too little time left for the next step the job goes on in the next invocation, and no attempt is
        spent.

        Args:
            state: from where to go on, up to 16 KB as JSON: a line, an offset, a charge's name.
            needs: what the next step needs of time; by default half as long again as the longest one so far.

        Raises:
            HandOver: the next invocation goes on. Let it fly, as what `check` raises, which looks after the commit.
            Conflict: something read has changed; nothing of this step was written.
            Refused: it cannot be kept, or does not fit into one transaction.
            CancelAsked: this step is committed, and the client has asked the job to end before the next.
            Unavailable: no answer.
        """
        if self.staged.reconciliations:
            message = "An unknown job is settled in the commit that ends this one, not at a checkpoint."
            raise Refused(message)
        self.steps.commit(state, self.staged, self.calls.answered)
        self._begin_step()
        self._check_guards()
        self.steps.go_on(needs)

    @property
    def split_name(self) -> str:
        """The name of this splitting, that no other job has, nor another life of this one's key: for what its parts make."""
        return self.steps.splitting.split.name

    @property
    def parts_split(self) -> int:
        """How many parts there are, with those that are staged: the number of the next."""
        return self.steps.splitting.split.parts + len(self.staged.parts)

    @property
    def room_for_parts(self) -> int:
        """How many parts the next checkpoint takes beside what is staged."""
        return max(PARTS_AT_ONCE - len(self.staged.parts) - (self.staged.entries + 1) // 2, 0)

    def split(self, job: Job[P, Any], payload: P) -> None:
        """Stage a part: a job of its own, accepted by the next checkpoint, retried and dead-lettered by itself.

        A checkpoint takes 49 parts of one type; `room_for_parts` tells when it is due.

        Raises:
            DeclarationError: the job does not declare this type in `parts`.
            Refused: the checkpoint is full, or the part could not be sent.
            Malformed: the payload is too large.
        """
        staged = self.staged.parts
        staged.append(self.steps.splitting.part(job, payload, staged, self.named))

    def await_parts(self) -> Tally:
        """What became of the parts, once all have ended. Until then the job waits, and occupies nobody.

        Raises:
            PartsUnderWay: the job goes on behind its checkpoint when they have ended. Let it fly.
            Refused: something is staged: take a checkpoint first.
            Unavailable: no answer.
        """
        if self.staged.others or self.staged.parts:
            message = "Something is staged, and would be lost while the job waits: take a checkpoint first."
            raise Refused(message)
        tally = self.steps.splitting.tally()
        if not tally.is_over:
            message = f"{tally.ended} of {tally.total} parts have ended."
            raise PartsUnderWay(message)
        return tally

    def part_results(self) -> Iterator[PartResult]:
        """How each part ended, in any order; a hundred are read at a time.

        Raises:
            Unavailable: no answer.
        """
        return self.steps.splitting.results()

    def progress(self, done: int, total: int | None = None, note: str = "") -> None:
        """Tell those who wait how far the job is: written every two seconds at most, and with each commit.

        Raises:
            Refused: a number below 0, or a note of over 200 characters.
            ClaimLost: another attempt took the job over.
        """
        self.steps.note(done, total, note)
