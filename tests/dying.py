"""A process that ends at a failpoint, within that of the tests: nothing that comes after it happens."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING

from shared.failpoints import Failpoint, armed

if TYPE_CHECKING:
    from collections.abc import Iterator


class Killed(BaseException):
    """The process ends here."""


@contextlib.contextmanager
def dying(point: Failpoint, at_pass: int = 1) -> Iterator[Counter[Failpoint]]:
    """Whoever passes the point for that time, counted from 1, dies there, and nobody later; gives how often each is passed."""
    passed: Counter[Failpoint] = Counter()

    def die(here: Failpoint) -> None:
        passed[here] += 1
        if here is point and passed[here] == at_pass:
            raise Killed

    with armed(die):
        yield passed
