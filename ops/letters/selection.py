"""Which dead letters are meant: by id, by group, by job type, by reason, by time, or all of a worker's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from ops.letters.dossier import Dossier


@dataclass(frozen=True, slots=True)
class Selection:
    """What a letter must be to be chosen; everything that is given must hold.

    Attributes:
        ids: beginnings of message ids, operation ids or keys of job records; one of them must fit.
        group: signature.
        since: of the last failure.
        until: the same.
        everything: whether no word but the worker's chooses; a selection without a word chooses nothing.
        only: message ids, of which a letter must have one: those that people have seen and agreed to.
    """

    ids: tuple[str, ...] = ()
    group: str | None = None
    job_type: str | None = None
    reason: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    everything: bool = False
    only: frozenset[str] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said about what is meant."""
        words = (self.group, self.job_type, self.reason, self.since, self.until)
        return not self.ids and not self.everything and all(word is None for word in words)

    def chooses(self, dossier: Dossier) -> bool:
        """Whether the letter is meant."""
        return (
            not self.is_empty
            and (self.only is None or dossier.delivery.message_id in self.only)
            and (not self.ids or any(self._names(name, dossier) for name in self.ids))
            and self.group in {None, dossier.signature}
            and self.job_type in {None, dossier.job_type}
            and self.reason in {None, dossier.reason}
            and self._in_time(dossier.died_at)
        )

    @property
    def told(self) -> str:
        """The selection in words, for the audit."""
        words = {
            "ids": " ".join(self.ids) or None,
            "group": self.group,
            "job type": self.job_type,
            "reason": self.reason,
            "since": self.since and self.since.isoformat(),
            "until": self.until and self.until.isoformat(),
        }
        told = ", ".join(f"{name} {word}" for name, word in words.items() if word is not None)
        return told or ("all" if self.everything else "nothing")

    @staticmethod
    def _names(name: str, dossier: Dossier) -> bool:
        record = dossier.record
        return dossier.delivery.message_id.startswith(name) or (
            record is not None and name in {record, dossier.operation}
        )

    def _in_time(self, moment: datetime | None) -> bool:
        if self.since is None and self.until is None:
            return True
        if moment is None:
            return False
        return (self.since is None or moment >= self.since) and (self.until is None or moment <= self.until)
