"""Looks through dead letters that may take long: each runs behind the pages, is kept for a while, and turns pages without a new one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ops.console.deeds import LOOK
from ops.letters.found import MOST, found_by, one_letter
from ops.letters.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ops.console.deeds import Underway
    from ops.console.visit import Visit
    from ops.letters.desk import Desk
    from ops.letters.dossier import Dossier

SAMPLE = 500  # letters a worker that are read unless people want more
KEPT_SECONDS = 60.0
AT_ONCE = 2.5  # seconds that a page waits for a look before it says that it goes on


@dataclass(frozen=True, slots=True)
class Letters:
    """What a look has found; `at` is by the clock that only goes forward, in seconds."""

    found: Sequence[tuple[Desk, Dossier]]
    cut: bool
    at: float


def look(visit: Visit, selection: Selection, worker: str | None, most: int, *, anew: bool = False) -> Underway:
    """The last look of this kind, which may still be under way; a new one where that is old, or people want it anew."""
    kept = visit.house.looks
    key = f"{selection.told}/{worker}/{most}"
    deed = kept.get(key)
    if deed is not None and not deed.is_over:
        return deed
    if deed is None or anew or not _is_fresh(visit, deed):
        for other in [name for name, each in kept.items() if each.is_over and not _is_fresh(visit, each)]:
            kept.pop(other, None)
        deed = kept[key] = fresh_look(visit, selection, worker, most)
    deed.wait(AT_ONCE)
    return deed


def fresh_look(visit: Visit, selection: Selection, worker: str | None, most: int) -> Underway:
    """A look that is begun now."""
    tools, told = visit.house.speaking()
    stack = visit.stack

    def work(_: Underway) -> Letters:
        found, cut = found_by(tools, stack, selection, worker, most)
        return Letters(found, cut, tools.clock.monotonic())

    whose = "all workers" if worker is None else worker
    return visit.house.deeds.begin(f"Reading the dead letters of {whose}", LOOK, told, work)


def letter(visit: Visit, worker: str, name: str) -> tuple[Desk, Dossier] | Underway:
    """One letter, with its job record as it stands now; or the look for it, where that takes longer.

    Raises:
        CommandError: there is none at this moment.
    """
    for deed in list(visit.house.looks.values()):
        for desk, dossier in deed.found.found if _is_fresh(visit, deed) else ():
            if desk.worker == worker and dossier.delivery.message_id == name:
                record = dossier.record
                views = {} if record is None else desk.records.views([record])
                return desk, dossier.beside(views.get(record or ""))
    deed = look(visit, Selection(ids=(name,)), worker, MOST)
    return one_letter(deed.found.found, name) if deed.found is not None else deed


def _is_fresh(visit: Visit, deed: Underway) -> bool:
    """Whether it has found something lately: letters go, and the pages hold them whole."""
    return deed.found is not None and visit.tools.clock.monotonic() - deed.found.at <= KEPT_SECONDS


def forget(visit: Visit) -> None:
    """Look anew the next time: something was changed."""
    visit.house.looks.clear()
