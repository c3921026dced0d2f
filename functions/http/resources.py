"""What the job types that are open to clients are about: whose it is, and whether the version that a client has seen is current.

Versions are read from the store, consistently; the cache decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from functions.http.caller import header_of, user_of
from functions.http.conditional import read_etags
from functions.inventory import HEAD, INVENTORY, sync_inventory
from functions.orders import ORDERS
from functions.payments import capture_payment
from functions.views.shown import etag_of
from shared.errors import Malformed
from shared.intake.request import Absent, Outdated
from shared.table import Table, Way

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from functions.http.conditional import ETags
    from shared.item import ItemStore, Key

# The table of what it is about, and its key by the payload.
RESOURCES: Mapping[str, tuple[Table, Callable[[Any], Key]]] = {
    capture_payment.name: (ORDERS, lambda payload: (payload.order_id,)),
    sync_inventory.name: (INVENTORY, lambda payload: (payload.user_id, HEAD)),
}
# Whose the resource is, where the payload says it; else only the resource knows, and is asked.
OWNERS: Mapping[str, Callable[[Any], str]] = {sync_inventory.name: lambda payload: payload.user_id}
# Open job types that are about nothing that somebody has. What is in neither is refused when the stack is synthesised.
ABOUT_NOBODY: frozenset[str] = frozenset()
TABLES: tuple[tuple[Table, tuple[Way, ...]], ...] = tuple(
    (table, (Way.ITEM,)) for table in dict.fromkeys(table for table, _ in RESOURCES.values())
)


@dataclass(frozen=True, slots=True)
class Conditions:
    """Makes the condition on which a request is accepted."""

    source: ItemStore

    def of(self, job_type: str, event: Mapping[str, Any]) -> Callable[[Any], None]:
        """What must hold for the payload of a request: it is about the caller's own, and at the version of `If-Match`.

        What is another's is told apart from what is absent by nothing, also not by how a job about it would end. Callers
        with AWS credentials act for users, and are asked for no user.

        Raises:
            Malformed: the header, or the job type is about nothing that has a version.
        """
        expected = read_etags(header_of(event, "if-match"), "If-Match")
        if expected is not None and job_type not in RESOURCES:
            raise Malformed("invalid-etag", "If-Match: this job type is about nothing that has a version")
        user = user_of(event)

        def condition(payload: Any) -> None:  # noqa: ANN401 - each job type has a payload of its own
            if user is not None and job_type in OWNERS and OWNERS[job_type](payload) != user:
                raise _absent()
            resource_tells = user is not None and job_type in RESOURCES and job_type not in OWNERS
            if expected is not None or resource_tells:
                table, key_of = RESOURCES[job_type]
                self._demand(table, key_of(payload), user, expected)

        return condition

    def _demand(self, table: Table, key: Key, user: str | None, expected: ETags | None) -> None:
        """Return if it is the user's, and its version among those expected; another user's resource has none.

        Raises:
            Absent: it is not there, or another's, and no version was expected.
            Outdated: with the current ETag.
        """
        stored = self.source.read(table, key)
        if stored is None or stored.deleted or user not in {None, stored.attributes.get("user_id")}:
            raise _absent() if expected is None else Outdated(None)
        current = etag_of(stored.version)
        if expected is not None and not expected.names(current):
            raise Outdated(current)


def _absent() -> Absent:
    return Absent("not-found", "it is not there, or not the caller's")
