"""One of each situation, as it is sent through a deployed stack and seen to end; `tahan smoke` shows it.

The probes are jobs of the worker `canary`: they touch nothing of anybody's, and leave nothing behind but job records that expire.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from functions import canary
from functions.canary import ASKED_FOR, Sung, smoke_probe
from ops.letters.archive import Archive
from ops.letters.discard import Discard, Thrown
from shared.errors import Unavailable
from shared.job_record import SYSTEM, Status, record_id
from shared.message import Message
from shared.strict_json import json_text

if TYPE_CHECKING:
    from ops.jobs.job_records import Jobs
    from ops.letters.desk import Desk
    from ops.letters.dossier import Dossier
    from ops.stack.deployed import Deployed
    from ops.tools import Tools

PAUSE = timedelta(seconds=1)
MOST_LETTERS = 1000


@dataclass(frozen=True, slots=True)
class Situation:
    """What is sent, and how it must end.

    Attributes:
        messages: how many of them are sent, all of one key.
        status: of its job record; None if it has none.
        reason: of its dead letter; None if it has none.
    """

    name: str
    ends: str
    messages: int = 1
    status: Status | None = Status.COMPLETED
    attempts: int = 1
    reason: str | None = None

    @property
    def expected(self) -> str:
        """In words."""
        return _words(self.status, self.attempts, self.reason)


SITUATIONS = (
    Situation("one job in three messages", "completed", messages=3),
    Situation("a job that fails once and is retried", "retried", attempts=2),
    Situation("a job that fails for good", "failed", status=Status.FAILED),
    Situation("a job that no retry can help", "dead-lettered", status=Status.DEAD_LETTERED, reason=ASKED_FOR),
    Situation("a message with a wrong payload", "well", status=None, attempts=0, reason="invalid-payload"),
)


@dataclass(frozen=True, slots=True)
class Result:
    """How something ended, beside how it must."""

    name: str
    expected: str
    seen: str

    @property
    def is_right(self) -> bool:
        """Whether it ended as it must."""
        return self.seen == self.expected


@dataclass(slots=True)
class Probes:
    """One run.

    Attributes:
        name: tells its probes from those of other runs.
        letters: all its dead letters, as they were found last, by how their probe was to end.
    """

    name: str
    stack: Deployed
    tools: Tools
    jobs: Jobs
    desk: Desk
    letters: dict[str, Dossier] = field(default_factory=dict)

    def message(self, situation: Situation) -> Message:
        """The probe of a situation."""
        payload = json_text({"run": self.name, "ends": situation.ends})
        return Message(smoke_probe.name, smoke_probe.version, self._key(situation), payload)

    def _key(self, situation: Situation) -> str:
        return f"smoke/{self.name}/{situation.ends}"

    def send(self) -> None:
        """Send one of each.

        Raises:
            CommandError: SQS does not take it.
        """
        producer = self.tools.producer(self.stack.queue_of(canary.WORKER.name))
        for situation in SITUATIONS:
            message = self.message(situation)
            for _ in range(situation.messages):
                producer.enqueue(message)

    def wait(self, patience: timedelta) -> list[Result]:
        """Look until all is as it must be, or the time is up; a store that does not answer is asked again."""
        deadline = self.tools.clock.monotonic() + patience.total_seconds()
        results = self._results()
        while not all(result.is_right for result in results) and self.tools.clock.monotonic() < deadline:
            self.tools.clock.sleep(PAUSE.total_seconds())
            results = self._results()
        return results

    def _results(self) -> list[Result]:
        try:
            self._look_for_letters()
            return [Result(each.name, each.expected, self._seen(each)) for each in SITUATIONS]
        except Unavailable as error:
            return [Result(each.name, each.expected, f"not seen: {error}") for each in SITUATIONS]

    def _seen(self, situation: Situation) -> str:
        letter = self.letters.get(situation.ends)
        reason = None if letter is None else letter.reason
        seen = self.jobs.look(record_id(SYSTEM, smoke_probe.name, self._key(situation)))
        if seen is None:
            return _words(None, 0, reason)
        view = seen.view
        effects = 1 if view.status is not Status.COMPLETED else Sung.model_validate_json(view.result or "").count
        more = "" if effects == 1 else f", {effects} effects"
        return f"{_words(view.status, view.attempts, reason)}{more}"

    def _look_for_letters(self) -> None:
        """Dead letters of this run, also those that there must not be."""
        mine = {self._key(situation): situation.ends for situation in SITUATIONS}
        for dossier in self.desk.look(MOST_LETTERS).dossiers:
            if dossier.message is not None and (ends := mine.get(dossier.message.idempotency_key)) is not None:
                self.letters[ends] = dossier

    def clean(self) -> int:
        """Throw this run's dead letters away, with those that came late; give how many are left, as far as is known."""
        thrown = 0
        with contextlib.suppress(Unavailable), tempfile.TemporaryDirectory() as folder:
            self._look_for_letters()
            only = frozenset(letter.delivery.message_id for letter in self.letters.values())
            with Archive(Path(folder) / "letters.jsonl") as archive:
                discard = Discard(self.desk, only, archive)
                discard.run()
            thrown = discard.fates[Thrown.DISCARDED]
        return len(self.letters) - thrown


def _words(status: Status | None, attempts: int, reason: str | None) -> str:
    tries = f" after {attempts} attempt{'' if attempts == 1 else 's'}" if status is not None else ""
    job = "no job" if status is None else f"{status.value}{tries}"
    return job if reason is None else f"{job}, dead letter {reason}"
