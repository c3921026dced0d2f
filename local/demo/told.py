"""What users are told over HTTP while the stack works: how their operations stand, and what they read of their things."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from local.demo.over_http import ASKED
from local.demo.situations import SITUATIONS

if TYPE_CHECKING:
    from local.demo.client import Client

READS = tuple(situation.read for situation in (*SITUATIONS, *ASKED) if situation.read is not None)
FINAL = frozenset({"done", "failed", "cancelled"})


class Told:
    """Asks as users do: until something has come to its end, and once more at the last look."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._owners: dict[str, str] = {}
        self.operations: dict[str, str] = {}
        self.first_reads: dict[tuple[str, str], str | None] = {}
        self.reads: dict[tuple[str, str], str | None] = {}

    def know(self, operation: str, user: str) -> None:
        """Ask for an operation from now on."""
        self._owners[operation] = user

    def look(self, *, is_last: bool) -> None:
        """Ask for what has not come to its end, or at last for everything."""
        for operation, user in self._owners.items():
            if is_last or self.operations.get(operation) not in FINAL:
                answer = self._client.get(user, f"/operations/{operation}")
                self.operations[operation] = str(answer.body.get("status", answer.status))
        for read in READS:
            place = (read.user, read.path)
            if place not in self.first_reads:
                self.first_reads[place] = self._read(*place)
                self.reads[place] = self.first_reads[place]
            elif is_last or self.reads[place] == self.first_reads[place]:
                self.reads[place] = self._read(*place)

    def _read(self, user: str, path: str) -> str | None:
        """The ETag; None where there is nothing, and the status where it cannot be told."""
        answer = self._client.get(user, path)
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        return answer.etag if answer.status == HTTPStatus.OK else str(answer.status)
