"""The paths of what users read of their own things."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from functions import users
from functions.http.reads import LONGEST_ID
from functions.openapi.parts import ANY_ROUTE, EVERY_ANSWER, STRING, Json, answer, header, problem, ref
from functions.outside.inventory_source import MOST_LINES, Line
from functions.views import invoices as invoice_views
from functions.views import orders as order_views
from shared.tag import DIGITS

ETAG = {"type": "string", "pattern": '^"[!#-~]*"$'}
ETAG_HEADER = header("Of what is shown: its version, or a hash.", ETAG)
# One ETag, or several, or `*`.
ETAGS = {"type": "string", "pattern": r'^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$', "maxLength": 1000}


def _texts(*names: str) -> Json:
    """Fields that are text, each if it is there."""
    return {"type": "object", "additionalProperties": False, "properties": dict.fromkeys(names, STRING)}


COUNT = {"type": "integer", "minimum": 0}
SCHEMAS: dict[str, Json] = {
    "User": {
        "type": "object",
        "required": ["user_id"],
        "additionalProperties": False,
        "properties": dict.fromkeys(users.FIELDS, STRING),
    },
    "Order": {
        "type": "object",
        "required": ["order_id"],
        "additionalProperties": False,
        "properties": dict.fromkeys(order_views.FIELDS, STRING),
    },
    "OrderSummary": {
        "type": "object",
        "required": ["orders", "paid", "complete"],
        "additionalProperties": False,
        "properties": {
            "orders": {"type": "object", "description": "By status.", "additionalProperties": COUNT},
            "paid": {"type": "object", "description": "By currency.", "additionalProperties": STRING},
            "complete": {
                "type": "boolean",
                "description": f"Whether all orders are counted, or {order_views.MOST_ORDERS} of more.",
            },
        },
    },
    "Inventory": {
        "type": "object",
        "required": ["user_id", "snapshot", "lines"],
        "additionalProperties": False,
        "properties": {
            "user_id": STRING,
            "snapshot": {"type": "string", "description": "The moment's name in the inventory system."},
            "lines": {"type": "array", "maxItems": MOST_LINES, "items": Line.model_json_schema()},
        },
    },
    "Invoice": {
        "type": "object",
        "description": "Before its totals are calculated it has none, and no taxes.",
        "required": ["invoice_id", "lines", "taxes"],
        "additionalProperties": False,
        "properties": {
            **dict.fromkeys(invoice_views.FIELDS, STRING),
            "lines": {"type": "array", "items": _texts(*invoice_views.LINE_FIELDS)},
            "taxes": {"type": "array", "items": _texts(*invoice_views.TAX_FIELDS)},
        },
    },
}


def paths() -> dict[str, Json]:
    """The paths, by path and method."""
    return {
        "/me": {"get": _read("me", "The caller", "User")},
        "/me/orders/{order_id}": {
            "parameters": [_id("order_id")],
            "get": _read("my-order", "One of the caller's orders", "Order"),
        },
        "/me/order-summary": {
            "get": _read("my-order-summary", "All of the caller's orders, counted", "OrderSummary", versioned=False)
        },
        "/me/inventory": {"get": _read("my-inventory", "The copy of the caller's inventory", "Inventory")},
        "/me/invoices/{invoice_id}": {
            "parameters": [_id("invoice_id")],
            "get": _read("my-invoice", "One of the caller's invoices", "Invoice"),
        },
    }


def _id(name: str) -> Json:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_ID, "pattern": "^[A-Za-z0-9._~-]+$"},
    }


def _read(name: str, summary: str, schema: str, *, versioned: bool = True) -> Json:
    parameters: list[dict[str, Any]] = [
        {
            "name": "If-None-Match",
            "in": "header",
            "description": "What the client has already; it is not sent again.",
            "schema": ETAGS,
        }
    ]
    if versioned:
        parameters.append(
            {
                "name": "min_version",
                "in": "query",
                "description": "A version that the client has seen: it is given nothing older.",
                "schema": {"type": "string", "pattern": f"^[0-9]{{1,{DIGITS}}}$"},
            }
        )
    known = {name: header("On every answer.", STRING) for name in EVERY_ANSWER}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": parameters,
        "responses": {
            "200": answer("As it is now", ref(schema), ETag=ETAG_HEADER),
            "304": {"description": "The client has it already", "headers": {**known, "ETag": ETAG_HEADER}},
            **ANY_ROUTE,
            **dict(
                (
                    problem(HTTPStatus.BAD_REQUEST, "A query or a header that is not understood"),
                    problem(HTTPStatus.NOT_FOUND, "Not there, or another's, or the caller is no user"),
                )
            ),
        },
    }
