"""The jobs of one owner, as the front door lists and counts them. Values and the store's Protocol; knows no AWS.

Only what was accepted for an owner is among them; jobs straight from a queue belong to the system and are in no list.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from shared.errors import Malformed

if TYPE_CHECKING:
    from shared.job_record import JobView

MOST_LISTED = 100  # what one read of DynamoDB takes
CHECKED = 16
_RECORD = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in an owner's list: that of the job last seen."""

    created_at: datetime
    record: str

    def written(self, owner: str) -> str:
        """As clients carry it: opaque, and with a digest that only fits this place of this owner's list.

        It is no signature. Whoever forges one gets to another place of a list that is the forger's own: the owner comes
        from the identity, never from here.
        """
        texts = [self.created_at.isoformat(), self.record]
        return base64.urlsafe_b64encode(json.dumps([*texts, _digest(owner, *texts)]).encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str, owner: str) -> Place:
        """The place that this text names in this owner's list.

        Raises:
            Malformed: it was not given for this list, or is not as it was given.
        """
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            created_at, record, _ = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
            place = cls(datetime.fromisoformat(created_at), record)
            as_given = bool(_RECORD.fullmatch(record)) and text == place.written(owner)
        except (ValueError, TypeError, RecursionError, binascii.Error) as error:
            raise Malformed("invalid-query", "next: not_given_here") from error
        if not as_given:  # whoever forges one may know the digest; what is no key at all DynamoDB would refuse
            raise Malformed("invalid-query", "next: not_given_here")
        return place


def _digest(owner: str, *texts: str) -> str:
    return hashlib.sha256(json.dumps([owner, *texts]).encode()).hexdigest()[:CHECKED]


@dataclass(frozen=True, slots=True)
class Listed:
    """A job in a list, read consistently; `created_at` is when it was accepted."""

    view: JobView
    created_at: datetime

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.created_at, self.view.record)


@dataclass(frozen=True, slots=True)
class Page:
    """A part of an owner's list, newest first.

    It may be shorter than was asked for, even empty, and still have a next one: what has expired is left out.
    """

    jobs: tuple[Listed, ...]
    next: Place | None = None


class OwnedJobs(Protocol):
    """The store of job records, asked for those of an owner.

    Both answers come from an index that is a moment behind: a job may be missing that was accepted just now.
    """

    def page(self, owner: str, limit: int, after: Place | None, now: datetime) -> Page:
        """The owner's jobs that come after a place, newest first, `limit` at the most (1 to 100).

        Raises:
            Unavailable: the store did not answer.
        """
        ...

    def unfinished(self, owner: str, most: int) -> int:
        """How many jobs of the owner have not ended since they were accepted; no more than `most` are counted.

        Raises:
            Unavailable: the store did not answer.
        """
        ...
