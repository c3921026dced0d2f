"""Files in memory, by bucket and key; it passes the same conformance suite as S3."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.files import File

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass
class MemoryFiles:
    """Files and their tags."""

    files: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def look(self, bucket: str, key: str) -> File | None:
        """The file as it is now."""
        body = self.files.get((bucket, key))
        return None if body is None else File(len(body), _tag(body))

    def read(self, bucket: str, key: str, tag: str, start: int, end: int) -> bytes | None:
        """A range of that version."""
        body = self.files.get((bucket, key))
        if body is None or _tag(body) != tag or len(body) < end:
            return None
        return body[start:end]

    def write(self, bucket: str, key: str, chunks: Iterable[bytes]) -> None:
        """Write a file."""
        self.files[bucket, key] = b"".join(chunks)


def _tag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
