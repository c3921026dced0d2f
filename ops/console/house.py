"""What lives as long as the console: the stack that it looks at, and what runs behind its pages."""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rich.console import Console

from ops.console.deeds import Deeds, Plans, Underway

if TYPE_CHECKING:
    from pathlib import Path

    from ops.stack.deployed import Deployed
    from ops.stack.running import Running
    from ops.tools import Tools

KNOWN_SECONDS = 30.0  # after which the stack, and with it the credentials, are looked up anew
WIDE = 100_000


@dataclass(slots=True)
class House:
    """One run of the console.

    Attributes:
        name: of the stack.
        archives: folder for what is discarded.
        docs: folder of the pages that are shown beside alarms.
        deeds: what runs on behind the pages.
        looks: the last look of each kind through dead letters.
        plans: what people have been shown and may agree to.
    """

    tools: Tools
    name: str
    archives: Path
    docs: Path
    read_only: bool = False
    deeds: Deeds = field(default_factory=Deeds)
    looks: dict[str, Underway] = field(default_factory=dict)
    plans: Plans = field(default_factory=Plans)
    _known: tuple[float, Deployed, Running] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def speaking(self) -> tuple[Tools, io.StringIO]:
        """Tools that tell people into a text of their own instead of a terminal: one page's, or one deed's."""
        told = io.StringIO()
        err = Console(file=told, width=WIDE, highlight=False, force_terminal=False, color_system=None)
        return replace(self.tools, out=err, err=err, running=lambda _: self.running), told

    @property
    def stack(self) -> Deployed:
        """The stack, as it was found lately.

        Raises:
            CommandError: there is none.
        """
        return self._looked_up()[0]

    @property
    def running(self) -> Running:
        """Who looks at what runs in it; its clients serve for a while, since making one takes longer than a call."""
        return self._looked_up()[1]

    def forget(self) -> None:
        """Look the stack up anew the next time: something did not go as it should."""
        self._known = None

    def _looked_up(self) -> tuple[Deployed, Running]:
        with self._lock:
            now = self.tools.clock.monotonic()
            if self._known is None or now - self._known[0] > KNOWN_SECONDS:
                stack = self.tools.deployed(self.name)
                self._known = (now, stack, self.tools.running(stack))
            return self._known[1], self._known[2]
