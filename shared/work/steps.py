"""The steps of a long job: what each commits with the job still held, how far it is, and when it goes on in the next invocation.

A step that was committed never runs again: whoever takes the job over begins behind its last checkpoint. Dying between a
checkpoint and its invalidation leaves stale cache entries, so a take-over repeats that first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shared.commit import Checkpoint, Progress
from shared.errors import CacheUnavailable, CancelAsked, HandOver, InvalidationFailed, Refused, Unavailable
from shared.failpoints import Failpoint, failpoint
from shared.limits import check_value
from shared.strict_json import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from shared.claim import Granted
    from shared.clock import Clock
    from shared.job_record import JobView
    from shared.job_records import JobRecords
    from shared.limits import Value
    from shared.tag import Tag
    from shared.work.splitting import Splitting
    from shared.work.staging import Staged

STATE_BYTES = 16 * 1024  # of a checkpoint's state: it is written with each
PROGRESS_EVERY = 2.0  # seconds
SPARE = 1.5  # times the longest step so far: what is left has to be more than that


@dataclass(slots=True)
class Steps:
    """The steps of one attempt.

    Attributes:
        granted: the claim, with the last checkpoint of the attempts before.
        splitting: the parts that it is split into.
        invalidate: drops tags; raises CacheUnavailable.
        deadline: when the handler must have returned.
    """

    records: JobRecords
    granted: Granted
    invalidate: Callable[[tuple[Tag, ...]], None]
    deadline: datetime
    clock: Clock
    splitting: Splitting
    progress: Progress | None = None
    _number: int = field(init=False)
    _state: str | None = field(init=False)
    _begun: float = field(init=False)
    _longest: float = 0.0
    _told: float | None = None

    def __post_init__(self) -> None:
        """Begin behind the last checkpoint."""
        self._number, self._state = self.granted.view.checkpoints, self.granted.view.checkpoint
        self._begun = self.clock.monotonic()

    @property
    def view(self) -> JobView:
        """The job's record, as far as this attempt has brought it."""
        split = self.splitting.split if self.is_split else None
        return replace(self.granted.view, checkpoints=self._number, checkpoint=self._state, split=split)

    @property
    def is_split(self) -> bool:
        """Whether the job has parts, with what this attempt has committed."""
        return bool(self.splitting.split.blocks)

    @property
    def last(self) -> dict[str, Any] | None:
        """The state of the last checkpoint; None before the first."""
        return None if self._state is None else json.loads(self._state)

    def resume(self) -> None:
        """Repeat the invalidation of the last checkpoint: whoever wrote it may have died before.

        Raises:
            InvalidationFailed: Redis did not answer.
        """
        self._drop(self.granted.view.checkpoint_tags)

    def commit(self, state: Mapping[str, Value], staged: Staged, answered: frozenset[str] = frozenset()) -> None:
        """Commit a step and drop its tags; `answered` are dependencies whose calls that cannot be repeated were.

        Raises:
            Refused: the state cannot be kept, or the step does not fit into one transaction.
            ClaimLost: Conflict, Unavailable: as for a job's commit.
            CancelAsked: it is committed, and the client has asked the job to end.
            InvalidationFailed: it is committed, and Redis did not answer.
        """
        text, tags = _written(state), staged.tags
        kept = tuple(tag.bare for tag in tags)
        split = self.splitting.with_(staged.parts)
        checkpoint = Checkpoint(
            self._number + 1,
            text,
            kept,
            staged.writes,
            staged.postings,
            self.progress,
            tuple(staged.parts),
            split,
            answered,
        )
        asked: CancelAsked | None = None
        try:
            self.records.checkpoint(self.granted.hold, checkpoint, self.clock.now())
        except CancelAsked as error:  # this step is written all the same
            asked = error
        failpoint(Failpoint.CHECKPOINTED)
        self._number, self._state = checkpoint.number, text
        self.splitting.split = split or self.splitting.split
        self._drop(tags)
        if asked is not None:
            raise asked

    def go_on(self, needs: timedelta | None) -> None:
        """Return if the next step fits into the time left: what it needs, or half as long again as the longest one so far.

        Raises:
            HandOver: it does not; the job goes on in the next invocation.
        """
        now = self.clock.monotonic()
        self._longest, self._begun = max(self._longest, now - self._begun), now
        enough = timedelta(seconds=SPARE * self._longest) if needs is None else needs
        left = self.deadline - self.clock.now()
        if left <= enough:
            message = f"The next step needs {enough}, and {left} are left: the next invocation goes on."
            raise HandOver(message)

    def note(self, done: int, total: int | None, note: str) -> None:
        """Tell how far the job is, every two seconds at most; the next commit tells the rest.

        Raises:
            Refused: it cannot be shown.
            ClaimLost: another attempt has the job.
        """
        now = self.clock.monotonic()
        self.progress = Progress(done, self.clock.now(), total, note)
        if self._told is not None and now - self._told < PROGRESS_EVERY:
            return
        self._told = now
        try:
            self.records.note_progress(self.granted.hold, self.progress)
        except Unavailable:
            return  # nothing depends on it
        failpoint(Failpoint.PROGRESS_TOLD)

    def _drop(self, tags: tuple[Tag, ...]) -> None:
        if not tags:
            return
        try:
            self.invalidate(tags)
        except CacheUnavailable as error:
            message = "A checkpoint's tags could not be invalidated."
            raise InvalidationFailed(message) from error
        failpoint(Failpoint.STEP_INVALIDATED)


def _written(state: Mapping[str, Value]) -> str:
    check_value(state, "the checkpoint")
    try:
        text = json_text(state)
    except (TypeError, ValueError) as error:
        message = (
            f"The checkpoint cannot be kept as JSON ({type(error).__name__}): use str, int, bool, None, list or dict."
        )
        raise Refused(message) from error
    if len(text.encode()) > STATE_BYTES:
        message = f"The checkpoint has {len(text.encode())} bytes, {STATE_BYTES} are kept: note where to go on, not what was done."
        raise Refused(message)
    return text
