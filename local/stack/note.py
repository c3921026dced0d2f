"""The note that a running stack leaves: by it `tahan --local` and `local.new_token` find it."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from local import ROOT
from local.processes.environment import CREDENTIALS, REGION
from local.stack.running import KEY_FILE, STACK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from local.stack.running import Stack

NOTE = ROOT / "build" / "local-stack.json"
ONLY_OURS = 0o600


@dataclass(frozen=True, slots=True)
class Note:
    """Where the running stack is. What it names lives as long as the stack.

    Attributes:
        environ: the AWS settings by which clients reach it and nothing else.
        key: file of the issuer's private key.
    """

    stack: str
    environ: dict[str, str]
    api: str
    issuer: str
    key: str

    @classmethod
    def of(cls, stack: Stack) -> Note:
        """The note about a running stack."""
        environ = {
            **CREDENTIALS,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": stack.standin.endpoint,
        }
        key = stack.folder / "issuer" / KEY_FILE
        return cls(STACK, environ, stack.api, stack.issuer.url, str(key))


@contextlib.contextmanager
def noted(note: Note, file: Path = NOTE) -> Iterator[Callable[[], None]]:
    """Leave the note while the block runs, where we alone may read it; another stack's note is replaced, not removed.

    What is given leaves it again if none is there: that stack may have ended since, and has taken its own away.
    """
    text = json.dumps(asdict(note), indent=1)

    def again() -> None:
        if not file.exists():
            _leave(text, file)

    _leave(text, file)
    try:
        yield again
    finally:
        with contextlib.suppress(OSError):
            if file.read_text(encoding="utf-8") == text:
                file.unlink()


def _leave(text: str, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}")
    opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, ONLY_OURS)
    with os.fdopen(opened, "w", encoding="utf-8") as draft_file:
        draft_file.write(text)
    draft.replace(file)  # at once, so that nobody reads half a note


def read_note(file: Path = NOTE) -> Note | None:
    """The note that a running stack has left; None if there is none, or it cannot be read."""
    try:
        return Note(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
