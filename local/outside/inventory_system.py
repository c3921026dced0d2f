"""The outside inventory system's stand-in: pages of a snapshot, slow, refused, lost, or changed while they are read.

`python -m local.outside.inventory_system --port 8091` runs it by hand, on loopback: GET /v1/inventories/{user_id}?limit=&cursor=,
GET /ledger.
"""

from __future__ import annotations

import argparse
import contextlib
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qs, unquote, urlsplit

from local.outside.server import LIMITED, UNAVAILABLE, Behaviour, OutsideHandler, OutsideServer, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH = "/v1/inventories/"
LARGEST_PAGE = 500
FEW = 3  # lines of an inventory that nothing else is said about


@dataclass(frozen=True, slots=True)
class Kind:
    """What is special about some users.

    Attributes:
        requests: how requests for them are treated.
        lines: how many their inventory has; None where the system does not know them.
        changes: after how many pages their inventory has changed once more, at most.
        forgets: whether a cursor of an old snapshot is refused instead of going on in the new one.
    """

    requests: Behaviour = field(default_factory=Behaviour)
    lines: int | None = FEW
    changes: int = 0
    forgets: bool = False


KINDS: Mapping[str, Kind] = {
    "slow-": Kind(Behaviour(then=Step(delay=timedelta(milliseconds=300)))),
    "503x2-": Kind(Behaviour(first=(UNAVAILABLE, UNAVAILABLE))),
    "500-": Kind(Behaviour(first=(Step(status=500, code="broken"),))),
    "429-": Kind(Behaviour(first=(LIMITED,))),
    "lost-": Kind(Behaviour(first=(Step(answers=False),))),
    "large-": Kind(lines=2500),
    "huge-": Kind(lines=10_001),
    "absent-": Kind(lines=None),
    "changing-once": Kind(lines=1200, changes=1),
    "changing-always": Kind(lines=1200, changes=1_000_000),
    "forgetting-": Kind(lines=1200, changes=1, forgets=True),
}


class Inventories:
    """All inventories, and how often each was asked for. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._pages: Counter[str] = Counter()
        self._generations: defaultdict[str, int] = defaultdict(lambda: 1)

    def next_step(self, user: str) -> Step:
        """Count a request for the user and tell how it is treated."""
        with self._lock:
            seen = self._requests[user]
            self._requests[user] += 1
        return kind_of(user).requests.step(seen)

    def change(self, user: str) -> None:
        """Let a user's inventory be another."""
        with self._lock:
            self._generations[user] += 1

    def page(self, user: str, cursor: str, limit: int) -> dict[str, object] | None:
        """A page of the snapshot that there is now; None where the cursor's is gone."""
        kind = kind_of(user)
        of, _, offset = cursor.partition(".")
        with self._lock:
            generation = self._generations[user]
            if cursor and kind.forgets and of != str(generation):
                return None
            self._pages[user] += 1
            if self._pages[user] <= kind.changes:
                self._generations[user] += 1
        begins = int(offset or 0)
        ends = min(begins + limit, kind.lines or 0)
        lines = [{"sku": f"sku-{number:05}", "quantity": number * generation} for number in range(begins, ends)]
        more = f"{generation}.{ends}" if ends < (kind.lines or 0) else None
        return {"snapshot": f"{user}.{generation}", "lines": lines, "next": more}

    def summary(self) -> dict[str, object]:
        """Everything, for those who check."""
        with self._lock:
            return {
                "requests_by_user": dict(self._requests),
                "pages_by_user": dict(self._pages),
                "generations": dict(self._generations),
            }


class InventorySystem(OutsideServer):
    """The server; `inventories` is all its state."""

    def __init__(self, port: int, *, quiet: bool = False) -> None:
        super().__init__(port, _Handler, quiet=quiet)
        self.inventories = Inventories()


class _Handler(OutsideHandler):
    @property
    def inventories(self) -> Inventories:
        return cast("InventorySystem", self.server).inventories

    def do_GET(self) -> None:  # noqa: N802 - http.server's name for it
        """Answer with a page, or what there is to check."""
        address = urlsplit(self.path)
        if address.path == "/health":
            self.answer(HTTPStatus.OK, {"status": "ok"})
        elif address.path == "/ledger":
            self.answer(HTTPStatus.OK, self.inventories.summary())
        elif address.path.startswith(PATH):
            query = {name: values[0] for name, values in parse_qs(address.query).items()}
            self._page(unquote(address.path.removeprefix(PATH)), query)
        else:
            self.answer(HTTPStatus.NOT_FOUND, {"code": "not_found"})

    def _page(self, user: str, query: Mapping[str, str]) -> None:
        step = self.inventories.next_step(user)
        time.sleep(step.delay.total_seconds())
        if not step.answers:
            self.hold()
        elif step.status is not None:
            self.answer(HTTPStatus(step.status), {"code": step.code}, step.headers)
        elif kind_of(user).lines is None:
            self.answer(HTTPStatus.NOT_FOUND, {"code": "unknown_user"})
        else:
            limit = min(int(query.get("limit", LARGEST_PAGE)), LARGEST_PAGE)
            page = self.inventories.page(user, query.get("cursor", ""), limit)
            if page is None:
                self.answer(HTTPStatus.GONE, {"code": "snapshot_gone"})
            else:
                self.answer(HTTPStatus.OK, page)


def kind_of(user: str) -> Kind:
    """What is special about a user: the table's row for the prefix, else nothing."""
    return next((kind for prefix, kind in KINDS.items() if user.startswith(prefix)), Kind())


def main() -> None:
    """Run the system until it is stopped."""
    parser = argparse.ArgumentParser(
        prog="python -m local.outside.inventory_system", description="The outside inventory system's stand-in."
    )
    parser.add_argument("--port", type=int, required=True, help="TCP port on 127.0.0.1")
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt), InventorySystem(options.port) as system:
        system.serve_forever()


if __name__ == "__main__":
    main()
