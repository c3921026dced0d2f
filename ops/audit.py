"""Who changes what, and why: a line before each change and one after it. Without the first there is no change."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ops.exits import CommandError
from shared.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ops.stack.deployed import Deployed
    from ops.tools import Tools

MOST_IDS = 100


class AuditLog(Protocol):
    """Where the lines are kept."""

    def write(self, line: str) -> None:
        """Keep a line.

        Raises:
            Unavailable: it may not be kept.
        """
        ...


@dataclass(slots=True)
class Ended:
    """What is told when a change is over."""

    counts: dict[str, int] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Change:
    """What is about to be changed.

    Attributes:
        what: the command.
        which: what was chosen, in its words.
        why: as people say it.
        ids: of what is known to be changed.
    """

    what: str
    which: str
    why: str | None
    ids: Sequence[str] = ()


@contextlib.contextmanager
def audited(tools: Tools, stack: Deployed, change: Change) -> Iterator[Ended]:
    """Tell of a change before and after it.

    Raises:
        CommandError: it cannot be told; nothing was changed.
    """
    log = tools.audit(stack.audit_log)
    told: dict[str, object] = {
        "who": tools.caller(),
        "what": change.what,
        "which": change.which,
        "why": change.why,
        "stack": stack.name,
        "change": tools.tokens(),
    }

    def write(how: str, **more: object) -> None:
        at = tools.clock.now().isoformat()
        log.write(json.dumps({"at": at, **told, "outcome": how, **more}))

    try:
        write("begins", **_bounded(change.ids))
    except Unavailable as error:
        message = f"Nothing was changed, since the audit cannot be written ({error})."
        raise CommandError(message) from error
    ended, how = Ended(), "broke off"
    try:
        yield ended
        how = "done"
    finally:
        try:
            write(how, counts=ended.counts, **_bounded(ended.ids))
        except Unavailable as error:
            tools.tell(f"The audit has the change's beginning and not its end ({error}).")


def _bounded(ids: Sequence[str]) -> dict[str, object]:
    return {"ids": list(ids[:MOST_IDS]), **({"more_ids": len(ids) - MOST_IDS} if len(ids) > MOST_IDS else {})}
