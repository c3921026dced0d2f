"""Discards letters that people have agreed to, told to the audit; for the command line and the console alike."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ops.audit import Change, audited
from ops.exits import CommandError
from ops.letters.discard import Archive, Discard, Thrown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ops.audit import Outcome
    from ops.letters.desk import Desk
    from ops.letters.dossier import Dossier
    from ops.stack.deployed import Deployed
    from ops.tools import Tools


@dataclass(frozen=True, slots=True)
class Thrower:
    """What is told of a discard beside its letters: what was chosen in words, why, and the file that keeps it."""

    which: str
    why: str
    archive: Path


@dataclass(slots=True)
class Discarded:
    """What became of the letters that were agreed to."""

    asked: int
    fates: Counter[Thrown] = field(default_factory=Counter)
    is_over: bool = False

    @property
    def missing(self) -> int:
        """How many were not there any more, or are looked at by somebody else; nobody knows before it is over."""
        return self.asked - self.fates.total() if self.is_over else 0

    @property
    def left(self) -> int:
        """How many are there still."""
        return self.fates.total() - self.fates[Thrown.DISCARDED]

    @property
    def fields(self) -> dict[str, object]:
        """How it ended, in counts."""
        return {
            "discarded": self.fates[Thrown.DISCARDED],
            "left": {fate.value: count for fate, count in self.fates.items() if fate is not Thrown.DISCARDED} or None,
            "gone_meanwhile": self.missing or None,
        }


def throw(
    tools: Tools,
    stack: Deployed,
    found: Sequence[tuple[Desk, Dossier]],
    thrower: Thrower,
    tell: Callable[[Discarded], None] = lambda _: None,
) -> Discarded:
    """Archive and discard these letters and no others; `tell` is called with what is done whenever some are.

    Raises:
        CommandError: the audit or the archive cannot be written; what is not in the archive is untouched.
        Unavailable: a store did not answer; what is done is done.
    """
    whole = Discarded(len(found))
    ids = [dossier.delivery.message_id for _, dossier in found]
    with audited(tools, stack, Change("dlq discard", thrower.which, thrower.why, ids)) as outcome:
        try:
            with Archive(thrower.archive) as archive:
                for desk, only in _by_desk(found):
                    with tools.busy(f"Archiving and discarding {len(only)} dead letters of {desk.worker} ..."):
                        _discard(desk, only, archive, whole, outcome, tell)
        except OSError as error:
            message = f"The archive cannot be written ({type(error).__name__}): what is not in it is untouched."
            raise CommandError(message) from error
    whole.is_over = True
    return whole


def _discard(  # noqa: PLR0913, PLR0917 - what one worker's letters need, told in one place
    desk: Desk,
    only: frozenset[str],
    archive: Archive,
    whole: Discarded,
    outcome: Outcome,
    tell: Callable[[Discarded], None],
) -> None:
    before = Counter(whole.fates)

    def note() -> None:
        whole.fates = before + discard.fates
        outcome.counts = {fate.value: count for fate, count in whole.fates.items()}

    def noted() -> None:
        note()
        tell(whole)

    discard = Discard(desk, only, archive, noted)
    try:
        discard.run()
    finally:  # also where it broke off: what is done is done
        note()


def _by_desk(found: Sequence[tuple[Desk, Dossier]]) -> list[tuple[Desk, frozenset[str]]]:
    names: dict[str, set[str]] = {}
    desks: dict[str, Desk] = {}
    for desk, dossier in found:
        desks[desk.worker] = desk
        names.setdefault(desk.worker, set()).add(dossier.delivery.message_id)
    return [(desks[worker], frozenset(chosen)) for worker, chosen in names.items()]
