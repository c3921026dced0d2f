"""What runs on behind the pages: looks that take long, and changes that people have agreed to. A page shows how each stands.

A deed is a thread. One that dies with the console is as safe as a command that was killed (docs/explanation/dead-letters.md).
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ops.exits import CommandError, Exit
from ops.explained import explained

if TYPE_CHECKING:
    import io
    from collections.abc import Callable

MOST_KEPT = 100  # changes that are over
FEW_KEPT = 10  # looks that are over, and plans: they hold letters whole
LOOK = "look"
NOT_THOUGHT_OF = "The console met an error that nobody thought of ({}): its traceback stands in the terminal."


class StoppedError(CommandError):
    """People have stopped the deed; what is done is done."""


@dataclass(slots=True)
class Underway:
    """Something under way, or over.

    Attributes:
        title: what it is, for people.
        facts: what a page shows of it; replaced as a whole, never changed.
        found: what it was to find, when it is over.
        problem: why it did not end well.
        status: how a command would have ended by it.
    """

    name: str
    title: str
    kind: str
    told: io.StringIO
    facts: dict[str, Any] = field(default_factory=dict)
    found: Any = None
    problem: str | None = None
    status: Exit = Exit.NOT_DONE
    _over: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def is_over(self) -> bool:
        """Whether it has ended, well or not."""
        return self._over.is_set()

    @property
    def is_stopping(self) -> bool:
        """Whether people have asked it to stop."""
        return self._stop.is_set()

    @property
    def lines(self) -> list[str]:
        """What it has told people so far."""
        return [line for line in self.told.getvalue().splitlines() if line.strip()]

    def wait(self, seconds: float) -> bool:
        """Wait until it is over, so long at the most; give whether it is."""
        return self._over.wait(seconds)

    def stop(self) -> None:
        """Ask it to stop where it next tells how it stands."""
        self._stop.set()

    def note(self, **facts: object) -> None:
        """Show how it stands.

        Raises:
            StoppedError: people have asked it to stop.
        """
        self.facts = {**self.facts, **facts}
        if self.is_stopping:
            message = "Stopped by hand: what is done is done, the rest is untouched."
            raise StoppedError(message)

    def run(self, work: Callable[[Underway], Any]) -> None:
        """Do it, in the thread that calls."""
        try:
            with explained():
                self.found = work(self)
        except CommandError as error:
            self.problem, self.status = str(error), error.status
        except Exception as error:
            self.problem = NOT_THOUGHT_OF.format(type(error).__name__)
            raise
        finally:
            self._over.set()


class Deeds:
    """The deeds of one run of the console, the newest last; old ones are forgotten."""

    def __init__(self) -> None:
        self._deeds: OrderedDict[str, Underway] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, title: str, kind: str, told: io.StringIO, work: Callable[[Underway], Any]) -> Underway:
        """Begin a deed; `work` is given it, to note how it stands, and gives what it has found."""
        deed = Underway(secrets.token_hex(8), title, kind, told)
        with self._lock:
            self._deeds[deed.name] = deed
            for most, is_look in ((FEW_KEPT, True), (MOST_KEPT, False)):
                over = [name for name, each in self._deeds.items() if each.is_over and (each.kind == LOOK) is is_look]
                for name in over[: max(0, len(over) - most)]:
                    del self._deeds[name]
        threading.Thread(target=deed.run, args=(work,), name=f"deed {kind}", daemon=True).start()
        return deed

    def get(self, name: str) -> Underway | None:
        """The deed of that name."""
        with self._lock:
            return self._deeds.get(name)

    def stop(self) -> list[str]:
        """Ask all that is under way to stop; give the titles."""
        with self._lock:
            under_way = [deed for deed in self._deeds.values() if not deed.is_over]
        for deed in under_way:
            deed.stop()
        return [deed.title for deed in under_way]

    def all(self, *kinds: str) -> list[Underway]:
        """Those of these kinds, the newest first."""
        with self._lock:
            return [deed for deed in reversed(self._deeds.values()) if deed.kind in kinds]


class Plans:
    """What people have been shown and may agree to, each once; old ones are forgotten."""

    def __init__(self) -> None:
        self._plans: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, plan: object, name: str | None = None) -> str:
        """Keep a plan, under its old name if it has one; give its name."""
        name = name or secrets.token_hex(8)
        with self._lock:
            self._plans[name] = plan
            while len(self._plans) > FEW_KEPT:
                self._plans.popitem(last=False)
        return name

    def show(self, name: str | None) -> Any:  # noqa: ANN401 - of any kind
        """The plan of that name, which stays; None if there is none any more."""
        with self._lock:
            return self._plans.get(name or "")

    def take(self, name: str | None) -> Any:  # noqa: ANN401 - the same
        """The plan of that name, which nobody can take again.

        Raises:
            CommandError: it was taken before, or is forgotten.
        """
        with self._lock:
            plan = self._plans.pop(name or "", None)
        if plan is None:
            message = "This was agreed to before, or the console has been started anew since: look at Changes, and count again."
            raise CommandError(message, Exit.REFUSED)
        return plan
