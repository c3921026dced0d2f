"""A stack that stays up for people: it says what to try, and leaves a note by which `tahan --local` and `local.new_token` find it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from local.environment import CREDENTIALS, REGION
from local.seed import seed
from local.situations import Order
from local.stack import KEY_FILE, STACK, STAGE
from local.standin import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from local.stack import Stack

NOTE = ROOT / "build" / "local-stack.json"
ONLY_OURS = 0o600
LOOK_EVERY = 1.0
ORDER = Order("order-try", "pi_ok_try")


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


def keep(stack: Stack, say: Callable[[str], None]) -> None:
    """Keep the stack up, with an order to try things on, until somebody interrupts us.

    Raises:
        ProcessError: a part of it ended.
    """
    seed(stack, [ORDER])
    with noted(Note.of(stack)) as again:
        for line in invitation(stack.api, stack.issuer.token(ORDER.user)):
            say(line)
        while True:
            stack.check()
            again()
            time.sleep(LOOK_EVERY)


def invitation(api: str, token: str) -> tuple[str, ...]:
    """What to try."""
    payload = json.dumps({"order_id": ORDER.order_id, "payment_intent_id": ORDER.intent})
    caller = '-H "Authorization: Bearer $TOKEN"'
    intent = f"-H 'Idempotency-Key: {ORDER.order_id}/capture' -H 'Content-Type: application/json'"
    return (
        f"The stack {STACK} (stage {STAGE}) is up until Ctrl-C. Its API: {api}",
        f"A token of {ORDER.user}, good for an hour (another: .venv/bin/python -m local.new_token {ORDER.user}):",
        "",
        f"TOKEN={token}",
        f"curl -i -X POST {api}/operations/capture-payment {caller} {intent} -d '{payload}'",
        f"curl -i {api}/me/orders/{ORDER.order_id} {caller}",
        "",
        "./tahan --local operation show --watch ID        (the operation_id of the answer)",
        f"./tahan --local enqueue sync-inventory --key try/sync/1 --payload '{json.dumps({'user_id': 'ok-try'})}'",
        "",
    )
