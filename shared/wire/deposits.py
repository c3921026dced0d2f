"""Payloads and results that are too large to travel: they are deposited in S3, and a mark of one line goes in their place.

The claim check of the integration patterns. A text is kept under its hash: depositing it again changes nothing, what is fetched is
what was deposited, and nobody names one whose text he does not know. What lies there is forgotten after 90 days, counted
from the last time it was deposited.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.errors import Malformed, Refused
from shared.files import Folder

if TYPE_CHECKING:
    from shared.files import FileStore

DEPOSITS = Folder("deposits", "texts")
INLINE_BYTES = 200 * 1024  # of a payload: what is larger is deposited
LARGEST_BYTES = 5 * 1024 * 1024  # a request and an answer of Lambda have 6 MB
KEPT = timedelta(days=90)
LONGEST_AHEAD = timedelta(days=45)  # for a job's time: then it is in queues, and a dead letter may be replayed
_MARK = re.compile(r"deposit:([0-9a-f]{64}):([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class Mark:
    """What goes in the place of a text: its SHA-256 and its size in bytes. No JSON text looks like it."""

    sha256: str
    size: int

    def __str__(self) -> str:
        """As it stands in the place of the text."""
        return f"deposit:{self.sha256}:{self.size}"

    @classmethod
    def of(cls, text: str) -> Mark:
        """The mark of a text."""
        body = text.encode()
        return cls(hashlib.sha256(body).hexdigest(), len(body))

    @classmethod
    def read(cls, text: str | None) -> Mark | None:
        """The mark that stands in a text's place; None if the text itself does."""
        found = None if text is None or not text.startswith("deposit:") else _MARK.fullmatch(text)
        return None if found is None else cls(found[1], int(found[2]))


@dataclass(frozen=True, slots=True)
class Deposits:
    """Where texts are deposited."""

    store: FileStore

    def fit(self, text: str, inline: int = INLINE_BYTES) -> str:
        """A text that may travel, or the mark of one that was deposited.

        Raises:
            Refused: it is larger than what is kept.
            Unavailable: the store did not answer.
        """
        size = len(text.encode())
        if size <= inline or Mark.read(text) is not None:
            return text
        if size > LARGEST_BYTES:
            message = f"{size} bytes, {LARGEST_BYTES} are kept: put it into a file, and send the file's name."
            raise Refused(message)
        mark = Mark.of(text)
        self.store.write(DEPOSITS.bucket, DEPOSITS.key(mark.sha256), [text.encode()])
        return str(mark)

    def whole(self, text: str) -> str:
        """The text itself, which may have been deposited.

        Raises:
            Malformed: deposit-gone: it was forgotten, was never there, or is not what its mark says.
            Unavailable: the store did not answer.
        """
        mark = Mark.read(text)
        if mark is None:
            return text
        key = DEPOSITS.key(mark.sha256)
        file = self.store.look(DEPOSITS.bucket, key)
        body = None if file is None else self.store.read(DEPOSITS.bucket, key, file.tag, 0, mark.size)
        if body is None or hashlib.sha256(body).hexdigest() != mark.sha256:
            raise Malformed("deposit-gone", "what was deposited is not there, or is not what its mark says")
        return body.decode()


def check_deposit_schedule(payload: str, wait: timedelta) -> None:
    """Refuse to deposit a payload for a job that may begin when it is forgotten.

    Raises:
        Refused: with the arithmetic.
    """
    if wait > LONGEST_AHEAD and Mark.read(payload) is not None:
        message = (
            f"A payload over {INLINE_BYTES} bytes for a job in {wait.days} days: it is kept for {KEPT.days}, and the job"
            f" may need it for long after its time; {LONGEST_AHEAD.days} days ahead are taken."
        )
        raise Refused(message)
