"""What users read of their own things, through the versioned cache: `/me`, orders, the summary of them, inventory, invoices.

Whose things they are is the verified identity's affair: nothing but the token's subject says which user is meant, and what is
another's is as absent as what never was. The cache decides nothing; it is asked first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from functions.http.answers import refusal, written_answer
from functions.http.caller import for_owner, header_of, query_of, user_of
from functions.http.conditional import read_etags
from functions.http.problem import NOT_FOUND
from functions.inventory import INVENTORY, inventory_tag, load_inventory
from functions.orders import ORDERS, order_tag, summary_tag
from functions.users import ENTRY, USERS, shown_user, user_tag
from functions.views.invoices import INVOICES, invoice_tag, load_invoice
from functions.views.orders import USER_ORDERS, load_order, load_summary
from functions.views.shown import ABSENT, Shown
from shared.errors import Malformed
from shared.table import Table, Way
from shared.tag import DIGITS, Version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

    from shared.cache import Cache
    from shared.caching.store import Loaded
    from shared.item import ItemSource

# What is read here and how; permissions follow from it.
TABLES: tuple[tuple[Table, tuple[Way, ...]], ...] = (
    (USERS, (Way.ITEM,)),
    (ORDERS, (Way.ITEM, Way.MANY)),
    (USER_ORDERS, (Way.ALL,)),
    (INVENTORY, (Way.ALL,)),
    (INVOICES, (Way.ITEM,)),
)
LONGEST_ID = 200
WAIT = timedelta(seconds=2)  # for another's load; then the source is asked, within the function's eight seconds
# The client may keep it, and has to ask each time whether it is still so: a 304 costs it nothing.
REVALIDATED = {"Cache-Control": "private, no-cache"}
_VERSION = re.compile(rf"[0-9]{{1,{DIGITS}}}")


@dataclass(frozen=True, slots=True)
class Reads:
    """Reads a user's things. Without a cache each comes from the source.

    All of it gives None for what is absent or another's, and raises Unavailable if neither cache nor source answers.
    """

    source: ItemSource
    cache: Cache | None

    def user(self, user: str, at_least: Version | None = None) -> Shown | None:
        """The user."""

        def load() -> Loaded:
            stored = self.source.read(USERS, (user,))
            absent = stored is None or stored.deleted
            return ABSENT if stored is None or absent else shown_user(stored.attributes, stored.version)

        return self._read(user_tag(user), ENTRY, load, at_least)

    def order(self, user: str, order_id: str, at_least: Version | None = None) -> Shown | None:
        """An order; the entry's name holds whose it is, so that nobody is given what was loaded for another."""
        if len(order_id) > LONGEST_ID:
            return None
        return self._read(order_tag(order_id), user, lambda: load_order(self.source, user, order_id), at_least)

    def summary(self, user: str) -> Shown | None:
        """The summary of the user's orders."""
        return self._read(summary_tag(user), "summary", lambda: load_summary(self.source, user), None)

    def inventory(self, user: str, at_least: Version | None = None) -> Shown | None:
        """The copy of the user's inventory."""
        return self._read(inventory_tag(user), "inventory", lambda: load_inventory(self.source, user), at_least)

    def invoice(self, user: str, invoice_id: str, at_least: Version | None = None) -> Shown | None:
        """An invoice; the entry's name holds whose it is, as an order's does."""
        if len(invoice_id) > LONGEST_ID:
            return None
        return self._read(invoice_tag(invoice_id), user, lambda: load_invoice(self.source, user, invoice_id), at_least)

    def _read(self, tag: str, name: str, load: Callable[[], Loaded], at_least: Version | None) -> Shown | None:
        text = load().value if self.cache is None else self.cache.read(tag, name, load, at_least=at_least, within=WAIT)
        return None if text is None else Shown.read(text)


def add_reads(app: APIGatewayHttpResolver, reads: Reads) -> None:
    """Add the routes."""

    def show(read: Callable[[str, Version | None], Shown | None], *, versioned: bool = True) -> Response[str]:
        return for_owner(app, lambda _, event: _shown(event, read, versioned=versioned))

    @app.get("/me")
    def user() -> Response[str]:
        return show(reads.user)

    @app.get("/me/orders/<order_id>")
    def order(order_id: str) -> Response[str]:
        return show(lambda user, at_least: reads.order(user, order_id, at_least))

    @app.get("/me/order-summary")
    def summary() -> Response[str]:
        return show(lambda user, _: reads.summary(user), versioned=False)

    @app.get("/me/inventory")
    def inventory() -> Response[str]:
        return show(reads.inventory)

    @app.get("/me/invoices/<invoice_id>")
    def invoice(invoice_id: str) -> Response[str]:
        return show(lambda user, at_least: reads.invoice(user, invoice_id, at_least))


def _shown(
    event: Mapping[str, Any], read: Callable[[str, Version | None], Shown | None], *, versioned: bool
) -> Response[str]:
    """Read, and answer with the representation, or that the client has it already."""
    query = query_of(event, *(["min_version"] if versioned else []))
    has = read_etags(header_of(event, "if-none-match"), "If-None-Match")
    user = user_of(event)
    found = None if user is None or len(user) > LONGEST_ID else read(user, _version_of(query.get("min_version")))
    if found is None:
        return refusal(NOT_FOUND)
    headers = {**REVALIDATED, "ETag": found.etag}
    if has is not None and has.has(found.etag):
        return written_answer(None, headers, status=HTTPStatus.NOT_MODIFIED)
    return written_answer(found.body, headers)


def _version_of(text: str | None) -> Version | None:
    """A version that the caller has seen.

    Raises:
        Malformed: it is none.
    """
    if text is None:
        return None
    if not _VERSION.fullmatch(text):
        raise Malformed("invalid-query", f"min_version: expected a number of {DIGITS} digits at most")
    return Version(int(text))
