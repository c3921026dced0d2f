"""The paths of operations, with the payload and the result of each job type that is open to clients."""

from __future__ import annotations

import typing
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from functions.http.answers import JSON
from functions.http.operations import ENDS, USUALLY_LISTED
from functions.http.resources import RESOURCES
from functions.openapi.parts import (
    ANY_ROUTE,
    RETRY_AFTER,
    SOMETIMES_RETRY_AFTER,
    STRING,
    Json,
    answer,
    header,
    problem,
    ref,
)
from functions.openapi.reads import ETAG_HEADER, ETAGS
from shared.commit import NOTE_LENGTH
from shared.intake.operation import OperationStatus
from shared.intake.owned_jobs import MOST_LISTED
from shared.intake.request import BODY_BYTES, FIRST_VERSION
from shared.message import KEY_LENGTH
from shared.naming import camel
from shared.outbox import LONGEST_SCHEDULE
from shared.outcome import Failed
from shared.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shared.job import Job

OPERATION_ID = {"type": "string", "pattern": "^op_[0-9a-f]{64}$"}
KEY = {"type": "string", "minLength": 1, "maxLength": KEY_LENGTH, "pattern": "^[!-~]([ -~]*[!-~])?$"}
STATUS = {"type": "string", "enum": [status.value for status in OperationStatus]}
ERROR = {
    "type": "object",
    "description": "Why it failed or was dead-lettered: a stable code, and a detail if the job gives one.",
    "required": ["code"],
    "additionalProperties": False,
    "properties": {"code": STRING, "detail": STRING},
}
IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "description": "The version that the client has seen of what the job is about. A key that is known is answered all the same.",
    "schema": ETAGS,
}
RUN_AT = {
    "name": "run_at",
    "in": "query",
    "description": f"Before then the job does not run; {LONGEST_SCHEDULE.days} days ahead at the most. A part of the request that the key names.",
    "schema": {"type": "string", "format": "date-time"},
}
VERSION_OF = (
    "Of the payload's schema. The highest is described here; earlier ones that are still read are brought to it."
)
PROGRESS: Json = {
    "type": "object",
    "description": "How far a long job is, or was when it told last; it decides nothing.",
    "properties": {
        "done": {"type": "integer", "minimum": 0},
        "total": {"type": "integer", "minimum": 0, "description": "Absent while nobody knows it"},
        "note": {"type": "string", "maxLength": NOTE_LENGTH},
        "at": {"type": "string", "format": "date-time"},
    },
    "required": ["done", "note", "at"],
    "additionalProperties": False,
}
PARTS: Json = {
    "type": "object",
    "description": "What became of the parts of a job that is split; a replayed one may change it after the job's end.",
    "properties": {name: {"type": "integer", "minimum": 0} for name in ("total", *ENDS)},
    "required": ["total", *ENDS],
    "additionalProperties": False,
}
OUTDATED = problem(
    HTTPStatus.PRECONDITION_FAILED,
    "It is at another version (`ETag`), or is not there, or not the caller's",
    ETag={**ETAG_HEADER, "required": False},
)


def schemas(jobs: Iterable[Job[Any, Any]]) -> dict[str, Json]:
    """The schemas of the operations, payloads and results of these job types."""
    found: dict[str, Json] = {"OperationError": ERROR, "Progress": PROGRESS, "Parts": PARTS}
    for job in jobs:
        name = camel(job.name)
        found[f"{name}Payload"] = _lifted(TypeAdapter(job.payload).json_schema(ref_template=REF), found)
        properties = {
            **_always(job),
            "error": ref("OperationError"),
            "run_at": RUN_AT["schema"],
            "progress": ref("Progress"),
            "parts": ref("Parts"),
            "cancelling": {"const": True, "description": "It has begun, and ends before its next step"},
        }
        if (result := _result_of(job)) is not None:
            found[f"{name}Result"] = _lifted(
                TypeAdapter(result).json_schema(mode="serialization", ref_template=REF), found
            )
            properties["result"] = ref(f"{name}Result")
        found[f"{name}Operation"] = _object(properties, required=list(_always(job)))
        found[f"{name}Listed"] = _object({**_always(job), "created_at": {"type": "string", "format": "date-time"}})
    return found


def paths(jobs: Iterable[Job[Any, Any]]) -> dict[str, Json]:
    """The paths, by path and method; accepting has one for each job type."""
    jobs = tuple(jobs)
    whole = {"anyOf": [ref(f"{camel(job.name)}Operation") for job in jobs]}
    listed = {"anyOf": [ref(f"{camel(job.name)}Listed") for job in jobs]}
    return {
        **{f"/operations/{job.name}": {"post": _accept(job)} for job in jobs},
        "/operations": {"get": _list(listed)},
        "/operations/{operation_id}": {
            "parameters": [{"name": "operation_id", "in": "path", "required": True, "schema": OPERATION_ID}],
            "get": {
                "operationId": "look",
                "summary": "How an operation stands; causes nothing",
                "responses": {
                    "200": answer("As it stands now", whole, Retry_After=SOMETIMES_RETRY_AFTER),
                    **ANY_ROUTE,
                    **dict([problem(HTTPStatus.NOT_FOUND, "Not there, or another's")]),
                },
            },
            "delete": {
                "operationId": "cancel",
                "summary": "Cancel what has not begun; a job of many steps ends before its next one",
                "responses": {
                    "200": answer("Cancelled", whole),
                    "202": answer(
                        "It ends before its next step; its parts that have not begun do not begin",
                        whole,
                        Retry_After=SOMETIMES_RETRY_AFTER,
                    ),
                    **ANY_ROUTE,
                    **dict([problem(HTTPStatus.NOT_FOUND, "Not there, or another's")]),
                    **dict(
                        [
                            problem(
                                HTTPStatus.CONFLICT,
                                "`begun`: it may have done what cannot be taken back; `ended`: nothing is left to cancel",
                            )
                        ]
                    ),
                },
            },
        },
    }


def _accept(job: Job[Any, Any]) -> Json:
    name = camel(job.name)
    return {
        "operationId": job.name,
        "summary": (job.handler.__doc__ or job.name).strip().partition("\n")[0],
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": True,
                "description": "Names the intent. The same key with the same payload is the same operation, for 30 days from its end.",
                "schema": KEY,
            },
            RUN_AT,
            {
                "name": "version",
                "in": "query",
                "required": job.oldest > FIRST_VERSION,
                "description": VERSION_OF,
                "schema": {
                    "type": "integer",
                    "minimum": job.oldest,
                    "maximum": job.version,
                    **({"default": FIRST_VERSION} if job.oldest == FIRST_VERSION else {}),
                },
            },
            *([IF_MATCH] if job.name in RESOURCES else []),
        ],
        "requestBody": {
            "required": True,
            "description": f"The payload, {BODY_BYTES // 1024} KiB at the most.",
            "content": {JSON: {"schema": ref(f"{name}Payload")}},
        },
        "responses": {
            "202": answer(
                "Accepted now, or before by the same request",
                ref(f"{name}Operation"),
                Location=header("The operation's path.", STRING),
                Retry_After=RETRY_AFTER,
                Idempotent_Replayed=header(
                    "Whether it was accepted before.", {"type": "string", "enum": ["true", "false"]}
                ),
            ),
            **ANY_ROUTE,
            **dict(
                [
                    problem(
                        HTTPStatus.BAD_REQUEST,
                        "No usable key, a body that is no JSON object, or a wrong query (`errors`)",
                    ),
                    *(
                        [problem(HTTPStatus.NOT_FOUND, "It is not there, or not the caller's")]
                        if job.name in RESOURCES
                        else []
                    ),
                    *([OUTDATED] if job.name in RESOURCES else []),
                    problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Send a reference to the large part"),
                    problem(
                        HTTPStatus.UNPROCESSABLE_ENTITY,
                        "The payload breaks its schema (`errors`) or is of a version that is not read, the key was used with another one, or `run_at` is too far ahead",
                    ),
                ]
            ),
        },
    }


def _list(listed: Json) -> Json:
    return {
        "operationId": "list",
        "summary": "The caller's operations, newest first",
        "parameters": [
            {
                "name": "limit",
                "in": "query",
                "schema": {"type": "integer", "minimum": 1, "maximum": MOST_LISTED, "default": USUALLY_LISTED},
            },
            {
                "name": "next",
                "in": "query",
                "description": "From the answer before; anything else is refused.",
                "schema": STRING,
            },
        ],
        "responses": {
            "200": answer(
                "A page, maybe shorter than asked for, and where the next one begins if there may be more",
                _object(
                    {"operations": {"type": "array", "maxItems": MOST_LISTED, "items": listed}, "next": STRING},
                    required=["operations"],
                ),
            ),
            **ANY_ROUTE,
            **dict([problem(HTTPStatus.BAD_REQUEST, "A query that is not understood (`errors`)")]),
        },
    }


REF = "#/components/schemas/{model}"


def _always(job: Job[Any, Any]) -> dict[str, Json]:
    return {"operation_id": OPERATION_ID, "job_type": {"const": job.name}, "status": STATUS}


def _object(properties: dict[str, Any], required: list[str] | None = None) -> Json:
    names = list(properties) if required is None else required
    return {"type": "object", "required": names, "additionalProperties": False, "properties": properties}


def _lifted(schema: Json, found: dict[str, Json]) -> Json:
    """The schema with what it defines put beside it."""
    found.update(schema.pop("$defs", {}))
    return schema


def _result_of(job: Job[Any, Any]) -> Any:  # noqa: ANN401 - a type, or None
    """What a job that is done gives; None if nothing."""
    hints = typing.get_type_hints(job.handler, localns={UnitOfWork.__name__: UnitOfWork})
    kinds = [kind for kind in typing.get_args(hints["return"]) or (hints["return"],) if kind is not Failed]
    if kinds == [type(None)]:
        return None
    return typing.Union[tuple(kinds)]  # noqa: UP007 - of kinds that are known at run time alone
