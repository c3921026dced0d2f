"""Splitting one job into parts: what is staged for a checkpoint, and what became of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from shared.errors import DeclarationError, Refused
from shared.job import JobTypes
from shared.outbox import posting_of
from shared.parts import PARTS_AT_ONCE, Part, Place, Split
from shared.pipeline.run import lock_keys
from shared.wire.parsing import fingerprint, typed_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.clock import Tokens
    from shared.job import Job
    from shared.job_record import JobView, Status
    from shared.message import Message
    from shared.parts import Tally
    from shared.payload import Payload
    from shared.rounds.counting import Parts
    from shared.wire.deposits import Deposits


@dataclass(frozen=True, slots=True)
class PartResult:
    """How a part ended, or stands.

    Attributes:
        number: of the part, in the order in which they were split off, from 0 on.
        result: of a part that is completed, as parsed JSON.
    """

    number: int
    status: Status
    result: Any = None


@dataclass(slots=True)
class Splitting:
    """The parts of one job, in the hands of one attempt.

    Attributes:
        view: the job's record as the claim has left it.
        declared: the job types that it may be split into.
        split: how far it is split, with what is committed.
        counted: what became of the parts when somebody asked last.
    """

    parts: Parts
    view: JobView
    declared: tuple[Job[Any, Any], ...]
    worker: str
    tokens: Tokens
    deposits: Deposits | None = None
    split: Split = field(init=False)
    counted: Tally | None = None

    def __post_init__(self) -> None:
        """Go on with the splitting of the attempts before, or begin one under this attempt's own name."""
        self.split = self.view.split or Split(self.view.token or "")

    def part(
        self, job: Job[Any, Any], payload: Payload, staged: list[Part], named: Callable[[Message], Message]
    ) -> Part:
        """The next part, behind those that are staged.

        Raises:
            DeclarationError: the job does not declare it.
            Refused: it is of another type than those that are staged, or they are as many as a checkpoint takes.
            Malformed: its payload is too large.
        """
        if all(known.name != job.name for known in self.declared):
            message = f"The job is split into {job.name!r} without declaring it: add it to `parts`."
            raise DeclarationError(message)
        if len(staged) >= PARTS_AT_ONCE:
            message = f"{PARTS_AT_ONCE} parts are staged, as many as a checkpoint takes: take it before the next."
            raise Refused(message)
        if staged and staged[0].job_type != job.name:
            message = "The parts of one checkpoint are of one type: take a checkpoint in between."
            raise Refused(message)
        number = self.split.parts + len(staged)
        record = self.split.record(job.name, number)
        message_ = named(job.message(payload, self.split.key(number), record=record))
        self._demand_runnable(job, message_)
        return Part(
            record=record,
            owner="",
            job_type=job.name,
            idempotency_key=message_.idempotency_key,
            fingerprint=fingerprint(message_, payload, job.version),
            payload=message_.payload,
            version=message_.version,
            token=self.tokens(),
            posting=posting_of(message_, self.tokens(), self.worker),
            place=Place(self.view.record, self.split.block(self.split.blocks), number),
            trace=None if message_.trace is None else message_.trace.header,
        )

    def _demand_runnable(self, job: Job[Any, Any], message: Message) -> None:
        """Return if the worker will be able to begin the part: what it would refuse is refused here, by its parent.

        Raises:
            Malformed: it would not.
        """
        _, read = typed_payload(message, JobTypes.of(job), self.deposits)
        lock_keys(job, read)

    def with_(self, staged: list[Part]) -> Split | None:
        """How far the job is split with these; None if there are none."""
        if not staged:
            return None
        return replace(self.split, blocks=self.split.blocks + 1, parts=self.split.parts + len(staged))

    def tally(self) -> Tally:
        """What became of the parts that are committed.

        Raises:
            Unavailable: the store did not answer.
        """
        self.counted = self.parts.tally(self.split)
        return self.counted

    def results(self) -> Iterator[PartResult]:
        """How each part ended, a hundred records at a time.

        Raises:
            Malformed: a result was deposited, and is gone.
            Unavailable: the store did not answer.
        """
        for view in self.parts.all_parts(self.split):
            if view.place is not None:
                yield PartResult(view.place.number, view.status, self._result(view))

    def _result(self, view: JobView) -> Any:  # noqa: ANN401 - parsed JSON
        if view.result is None:
            return None
        return json.loads(view.result if self.deposits is None else self.deposits.whole(view.result))
