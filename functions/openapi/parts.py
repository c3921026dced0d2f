"""What the paths of the document are made of: answers, headers, problems. Knows no path."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from functions.http.answers import HEADERS, JSON, PROBLEM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic.json_schema import JsonSchemaValue

Json = dict[str, Any]
STRING = {"type": "string"}
SECONDS = {"type": "integer", "minimum": 1}
# Every answer of the function has these; the gateway's own refusals have none of them.
EVERY_ANSWER = tuple(HEADERS)
GATEWAY = "the gateway's own refusals have a `message` instead"
SCHEMAS: Mapping[str, JsonSchemaValue] = {
    "Problem": {
        "type": "object",
        "description": "Problem details (RFC 9457). `code` is stable and for programs; none of its texts holds a value that was sent.",
        "required": ["title", "status", "code"],
        "additionalProperties": False,
        "properties": {
            "title": STRING,
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "code": STRING,
            "detail": STRING,
            "errors": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["field", "rule"],
                    "additionalProperties": False,
                    "properties": {"field": STRING, "rule": STRING},
                },
            },
        },
    },
    "Message": {
        "type": "object",
        "description": "What API Gateway itself answers, before the request comes to the front door.",
        "required": ["message"],
        "properties": {"message": STRING},
    },
}


def ref(schema: str) -> Json:
    """A reference to one of the document's schemas."""
    return {"$ref": f"#/components/schemas/{schema}"}


def header(description: str, schema: Json, *, required: bool = True) -> Json:
    """A header of an answer."""
    return {"description": description, "required": required, "schema": schema}


RETRY_AFTER = header("Seconds to wait before the same request is sent again, or the operation is looked at.", SECONDS)
SOMETIMES_RETRY_AFTER = {**RETRY_AFTER, "required": False}


def answer(description: str, schema: Json, **headers: Json) -> Json:
    """An answer of the function; a header's name is written with underscores."""
    named = {name.replace("_", "-"): described for name, described in headers.items()}
    return {
        "description": description,
        "headers": {**{name: header("On every answer.", STRING) for name in EVERY_ANSWER}, **named},
        "content": {JSON: {"schema": schema}},
    }


def problem(status: HTTPStatus, description: str, **headers: Json) -> tuple[str, Json]:
    """A refusal by the function."""
    named = {name.replace("_", "-"): described for name, described in headers.items()}
    return str(status.value), {
        "description": description,
        "headers": named,
        "content": {PROBLEM: {"schema": ref("Problem")}},
    }


def also_of_the_gateway(status: HTTPStatus, description: str, **headers: Json) -> tuple[str, Json]:
    """A refusal by the function, or by API Gateway before it."""
    code, refused = problem(status, f"{description}; {GATEWAY}", **headers)
    refused["content"][JSON] = {"schema": ref("Message")}
    return code, refused


# What any route may answer.
ANY_ROUTE = dict(
    (
        also_of_the_gateway(HTTPStatus.UNAUTHORIZED, "No verified identity"),
        also_of_the_gateway(
            HTTPStatus.TOO_MANY_REQUESTS,
            "This owner, or all clients together, ask too often",
            Retry_After=SOMETIMES_RETRY_AFTER,
        ),
        also_of_the_gateway(HTTPStatus.INTERNAL_SERVER_ERROR, "A fault of ours"),
        also_of_the_gateway(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "Nothing is lost: send the same request again",
            Retry_After=SOMETIMES_RETRY_AFTER,
        ),
    )
)
