"""What the workers say: the log line that they write for each delivery, read from the stand-in's log as it grows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from local.demo.observation import Word

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class ConsumerLog:
    """Reads a growing log; what is no line about a delivery is passed over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._words: dict[str, tuple[Word, ...]] = {}

    def words(self) -> Mapping[str, tuple[Word, ...]]:
        """All that was said so far, by the message id of SQS."""
        with self._path.open("rb") as log:
            log.seek(self._read)
            for line in log:
                if not line.endswith(b"\n"):  # still being written
                    break
                self._read += len(line)
                self._take(line)
        return dict(self._words)

    def _take(self, line: bytes) -> None:
        try:
            fields = json.loads(line)
            message_id, word = fields["message_id"], Word(fields["result"], fields.get("because"))
        except (ValueError, KeyError, TypeError):
            return
        self._words[message_id] = (*self._words.get(message_id, ()), word)
