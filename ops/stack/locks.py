"""Lock keys that are held: the stack's lookout looks for us, within the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ops.stack.running import Running

USUAL, MOST = 100, 1000


def some_locks(running: Running, start: str, most: int = USUAL) -> dict[str, Any]:
    """The `locks` whose keys begin so, and whether these are `complete`.

    Raises:
        Unavailable: the lookout, or the cache, does not answer.
    """
    return running.ask_lookout({"look": "locks", "start": start, "most": most})


def lock_of(running: Running, key: str) -> dict[str, Any] | None:
    """The lock of a key: its `holder`, and `left_s`, for how long; None where nobody holds it.

    Raises:
        Unavailable: the lookout, or the cache, does not answer.
    """
    found: dict[str, Any] | None = running.ask_lookout({"look": "lock", "key": key})["lock"]
    return found
