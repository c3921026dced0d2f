"""Where job records are kept, as the pipeline sees it: what a store promises of each write, and what it raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from shared.claim import Answer, Claim
    from shared.commit import Checkpoint, Commit, Progress, Release
    from shared.job_record import Hold, JobView
    from shared.message import Message
    from shared.outcome import Failure


class JobRecords(Protocol):
    """The store of job records. Each method is one conditional write; a lost reply is resolved by the attempt token."""

    def claim(self, claim: Claim, now: datetime) -> Answer:
        """Hold the job for one more attempt, or say why not.

        Raises:
            Unavailable: the store did not answer; whether it was granted shows at the next claim.
        """
        ...

    def commit(self, hold: Hold, commit: Commit, now: datetime) -> None:
        """Write everything in one transaction, if this attempt still holds the job and nothing it read has changed.

        Raises:
            ClaimLost: the job is no longer held by this attempt; nothing was written.
            Conflict: an item read has changed; nothing was written.
            Refused: the store would refuse it whatever comes; nothing was written.
            Unavailable: it did not answer, or is busy. A later claim tells what happened.
        """
        ...

    def checkpoint(self, hold: Hold, checkpoint: Checkpoint, now: datetime) -> None:
        """Write a step in one transaction, if this attempt still holds the job and nothing it read has changed; it goes on.

        Raises:
            CancelAsked: the step is written, and the job's client has asked it to end before the next.
            ClaimLost: Conflict, Refused, Unavailable: as for `commit`.
        """
        ...

    def note_progress(self, hold: Hold, progress: Progress) -> None:
        """Tell how far the job is.

        Raises:
            ClaimLost: it is no longer held by this attempt.
            Unavailable: the store did not answer.
        """
        ...

    def release(self, hold: Hold, release: Release, now: datetime) -> None:
        """Give the job back for a later attempt.

        Raises:
            ClaimLost: it is no longer held.
            Unavailable: the store did not answer; the claim ends at its deadline.
        """
        ...

    def bury(self, hold: Hold, death: int, failure: Failure, now: datetime) -> None:
        """Mark the job dead-lettered for the `death`-th time, after its message is in the dead-letter queue.

        Raises:
            ClaimLost: it is no longer held.
            Unavailable: the store did not answer.
        """
        ...

    def bury_unbegun(self, message: Message, failure: Failure, now: datetime) -> None:
        """Mark an accepted job dead-lettered of which no attempt ever began, after its message is in the dead-letter queue.

        The message is the job's own: of the record that it names it has the type, the key and the payload. Any other job is
        left as it is; repeating it changes nothing.

        Raises:
            Unavailable: the store did not answer.
        """
        ...

    def prolong(self, hold: Hold, until: datetime, now: datetime) -> None:
        """Move the claim's deadline; repeating it is harmless.

        Raises:
            ClaimLost: the job is no longer held by this attempt.
            Unavailable: the store did not answer.
        """
        ...

    def intend(self, hold: Hold, dependency: str) -> bool:
        """Note that this attempt is about to call; False if another attempt noted it and did not take it back.

        Raises:
            ClaimLost: the job is no longer held by this attempt.
            Unavailable: the store did not answer; it may be noted.
        """
        ...

    def withdraw(self, hold: Hold, dependency: str) -> None:
        """Take this attempt's note back: the call was certainly not done.

        Raises:
            ClaimLost: the job is no longer held by this attempt.
            Unavailable: the store did not answer.
        """
        ...

    def fence(self, hold: Hold, key: str) -> int:
        """Give the next number of a key, if this attempt still holds its job. Numbers of one key grow for ever.

        A repeated request of one attempt gets the number it had.

        Raises:
            ClaimLost: the job is no longer held by this attempt.
            Unavailable: the store did not answer.
        """
        ...

    def view(self, record: str) -> JobView | None:
        """Read a record, consistently; None if there is none or it has expired."""
        ...
