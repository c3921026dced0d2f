"""A dead letter and what is known of it: why it died, of which job it is, how that job stands. And letters in groups.

Nothing here reads or changes anything. A letter whose body nobody can read is a letter, too.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shared.clock import to_millis
from shared.dead_letter import Death, facts_of, how_it_died
from shared.delivery import ENCODING_ATTRIBUTE
from shared.errors import Malformed, NewerVersion
from shared.job_record import SYSTEM, operation_id, record_id
from shared.trace import read_xray
from shared.wire.parsing import read_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from shared.delivery import Delivery
    from shared.job_record import JobView
    from shared.message import Message

# Reasons of letters that name a record which is not theirs: it is of another payload, or of nobody.
OF_NO_RECORD = frozenset({"idempotency-key-reused", "not-accepted"})
NO_JOB_TYPE = "(unreadable)"


@dataclass(frozen=True, slots=True)
class Dossier:
    """A dead letter, read once.

    Attributes:
        worker: whose dead-letter queue it lies in.
        delivery: as received.
        message: its envelope; None where it cannot be read, and `problem` says why.
        view: the record of its job; None if there is none, or the letter has none of its own.
        strays: whether the record that its message names is of another job, or of another payload.
    """

    worker: str
    delivery: Delivery
    message: Message | None
    problem: str | None = None
    view: JobView | None = None
    strays: bool = False

    def beside(self, view: JobView | None) -> Dossier:
        """The letter beside the record that its message names. One of another job or payload is not its own: nobody compared them yet."""
        if view is None or self.message is None or not _is_of_another(self, self.message, view):
            return replace(self, view=view)
        return replace(self, strays=True)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What its consumer wrote when it died."""
        return facts_of(self.delivery)

    @property
    def spoke(self) -> bool:
        """Whether its consumer sent it here, with a reason. If not, SQS moved it."""
        return "reason" in self.facts

    @property
    def death(self) -> int:
        """How often the message had died when it was sent; 0 where nobody counted."""
        try:
            return self.delivery.death
        except Malformed:
            return 0

    @property
    def record(self) -> str | None:
        """The key of its job record; None where it can have none of its own."""
        if self.message is None or self.strays or (self.spoke and self.reason in OF_NO_RECORD):
            return None
        return self.message.record or record_id(SYSTEM, self.message.job_type, self.message.idempotency_key)

    @property
    def operation(self) -> str | None:
        """The operation id of its job."""
        return None if self.record is None else operation_id(self.record)

    @property
    def kind(self) -> Death:
        """How it came here."""
        return how_it_died(self.delivery, self.view)

    @property
    def job_type(self) -> str:
        """As its message says."""
        told = self.facts.get("job_type")
        if self.message is not None:
            return self.message.job_type
        return told if isinstance(told, str) else NO_JOB_TYPE

    @property
    def reason(self) -> str:
        """Why it died: its consumer's reason, or how SQS came to move it."""
        return str(self.facts["reason"]) if self.spoke else self.kind.value

    @property
    def signature(self) -> str:
        """The same for letters that died of one cause."""
        told = self.facts.get("signature")
        return told if isinstance(told, str) and self.spoke else self.reason

    @property
    def attempts(self) -> int:
        """How many it had."""
        told = self.facts.get("attempts")
        return told if isinstance(told, int) else 0 if self.view is None else self.view.attempts

    @property
    def died_at(self) -> datetime | None:
        """Its last failure; where nobody told, when the message was sent."""
        told = self.facts.get("last_failure")
        if isinstance(told, str):
            with contextlib.suppress(ValueError):
                moment = datetime.fromisoformat(told)
                if moment.tzinfo is not None:  # others cannot be compared with it
                    return moment
        return self.delivery.sent_at

    @property
    def trace(self) -> str | None:
        """The trace by which its log lines are found."""
        told = self.facts.get("trace_id")
        if isinstance(told, str):
            return told
        trace = (None if self.message is None else self.message.trace) or read_xray(self.delivery.trace)
        return None if trace is None else trace.trace_id

    @property
    def body_hash(self) -> str:
        """By which two letters of one unreadable body are known."""
        return hashlib.sha256(self.delivery.body.encode(errors="surrogatepass")).hexdigest()


def read(worker: str, delivery: Delivery) -> Dossier:
    """Read a letter, whatever it holds."""
    try:
        message = read_message(delivery.body, delivery.text_attribute(ENCODING_ATTRIBUTE))
    except Malformed as error:
        return Dossier(worker, delivery, None, error.reason)
    except NewerVersion:
        return Dossier(worker, delivery, None, "newer-version")
    return Dossier(worker, delivery, message)


def _is_of_another(dossier: Dossier, message: Message, view: JobView) -> bool:
    """Whether a record is of another job than the letter: its message never came so far that a claim compared them."""
    if (view.names.get("job_type"), view.names.get("idempotency_key")) != (message.job_type, message.idempotency_key):
        return True
    if (dossier.spoke and dossier.attempts) or message.job_id in view.earlier:
        return False
    asked, kept = (message.payload, _millis(message.run_at)), (view.payload, _millis(view.run_at))
    return view.payload is not None and view.version == message.version and asked != kept


def _millis(moment: datetime | None) -> int | None:
    return None if moment is None else to_millis(moment)  # as the record keeps it


@dataclass(frozen=True, slots=True)
class Group:
    """Letters that died of one cause: one repair helps them all."""

    worker: str
    job_type: str
    signature: str
    reason: str
    kind: Death
    error: str | None
    dependency: str | None
    letters: int
    first: datetime | None
    last: datetime | None


def grouped(dossiers: Iterable[Dossier]) -> list[Group]:
    """Groups by worker, job type, signature and reason, the largest first."""
    groups: dict[tuple[str, str, str, str], list[Dossier]] = {}
    for dossier in dossiers:
        key = (dossier.worker, dossier.job_type, dossier.signature, dossier.reason)
        groups.setdefault(key, []).append(dossier)
    made = []
    for (worker, job_type, signature, reason), members in groups.items():
        times = sorted(member.died_at for member in members if member.died_at is not None)
        facts, kind = members[-1].facts, members[-1].kind
        error, dependency = facts.get("error"), facts.get("dependency")
        made.append(
            Group(
                worker,
                job_type,
                signature,
                reason,
                kind,
                error if isinstance(error, str) else None,
                dependency if isinstance(dependency, str) else None,
                len(members),
                times[0] if times else None,
                times[-1] if times else None,
            )
        )
    return sorted(made, key=lambda group: (-group.letters, group.worker, group.job_type, group.signature))
