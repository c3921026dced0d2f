"""The end of work in Redis: tags dropped and leases given back, for jobs that end at about the same time in one exchange.

A commit that begins is announced. Who has committed waits a moment for those under way, and the first of them sends for
all. Nobody waits who would keep another delivery waiting: a batch never lasts longer for it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.errors import CacheUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.clock import Clock
    from shared.lease import Lease, Leases
    from shared.tag import Tag

# About what a transaction takes. Leases are held, and tags are stale, for that much longer.
GATHERING = timedelta(milliseconds=20)


@dataclass(slots=True, eq=False)
class _Ending:
    """What one delivery has to tell, and whether that was done for it; if not, it does so itself; None until that is known."""

    tags: Sequence[Tag]
    held: Sequence[tuple[str, str]]  # lock key and token
    is_told: bool | None = None


@dataclass(slots=True)
class Finishing:
    """Ends the work of deliveries.

    Attributes:
        gathering: how long who has committed waits for others that commit; none for each by itself.
        gathers: whether anybody waits at all in this batch.
    """

    leases: Leases
    clock: Clock
    gathering: timedelta = GATHERING
    gathers: bool = True
    _coming: dict[str, float] = field(default_factory=dict)  # when the commit of a delivery began, in monotonic seconds
    _endings: list[_Ending] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def expect(self, delivery: str) -> None:
        """The commit of a delivery begins; it will `finish` soon, or nobody waits for it any more."""
        if self.gathers:
            with self._changed:
                self._coming[delivery] = self.clock.monotonic()

    def finish(self, delivery: str, tags: Sequence[Tag], leases: Sequence[Lease]) -> None:
        """Drop the tags and give the leases back; nothing to do costs nothing.

        Raises:
            CacheUnavailable: some of it may not have happened; the leases end by themselves.
        """
        ending = _Ending(tags, self.leases.forgotten(leases))
        with self._changed:
            self._coming.pop(delivery, None)
            if not ending.tags and not ending.held:
                self._changed.notify_all()
                return
            self._endings.append(ending)
            leads = len(self._endings) == 1
            self._changed.notify_all()
            if not leads:
                self._changed.wait_for(lambda: ending.is_told is not None)
        if leads:
            self._tell_all()
        if not ending.is_told:
            self.leases.tell(ending.tags, ending.held)

    def _tell_all(self) -> None:
        """Tell Redis for all that end now. If that fails, each is left to do so by itself: one that is refused takes nobody along."""
        together: list[_Ending] = []
        is_told = False
        try:
            with self._changed:
                try:
                    self._gather()
                finally:
                    together, self._endings = self._endings, []
            tags = [tag for ending in together for tag in ending.tags]
            self.leases.tell(tags, [lease for ending in together for lease in ending.held])
            is_told = True
        except CacheUnavailable:
            if len(together) == 1:
                raise
        finally:
            with self._changed:
                for ending in together:
                    ending.is_told = is_told
                self._changed.notify_all()

    def _gather(self) -> None:
        """Wait for those that commit now, each as long as a commit takes, and all no longer than one."""
        longest = self.gathering.total_seconds()
        begun = self.clock.monotonic()
        while self._coming:
            left = min(begun, max(self._coming.values())) + longest - self.clock.monotonic()
            if left <= 0 or not self._changed.wait(left):
                self._coming.clear()
                return
