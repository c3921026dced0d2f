"""The OpenAPI document is what is deployed: every route, every open job type, and the file that is committed (API9)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from openapi_spec_validator import validate
from pydantic import BaseModel

from functions import front_door
from functions.http.routes import ROUTES
from functions.openapi import operations
from functions.openapi.document import PAGE, document, text
from shared.naming import camel
from tests.functions.house import House
from tests.world import Note, note_job

if TYPE_CHECKING:
    from shared.unit_of_work import UnitOfWork

METHODS = {"get", "post", "delete", "put", "patch"}


def described() -> set[tuple[str, str]]:
    return {
        (method.upper(), path) for path, item in document()["paths"].items() for method in item if method in METHODS
    }


def test_the_committed_document_is_the_codes() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(), "write it anew: make openapi"


def test_the_document_is_openapi_3_1() -> None:
    assert document()["openapi"].startswith("3.1")
    validate(document())


def test_api9_every_route_is_described_and_every_described_one_is_a_route() -> None:
    fits = {
        (method, path): [
            route
            for route in ROUTES
            if route.method == method
            and (route.path == path or re.fullmatch(re.sub(r"\{\w+\}", "[^/{]+", route.path), path))
        ]
        for method, path in described()
    }
    assert all(fits.values())
    assert {str(route) for routes in fits.values() for route in routes} == {str(route) for route in ROUTES}


def test_api9_the_app_has_these_routes_and_no_others() -> None:
    app = House().door.app
    made = {(route.method, route.path) for route in (*app._static_routes, *app._dynamic_routes)}
    assert {f"{method} {path.replace('<', '{').replace('>', '}')}" for method, path in made} == {
        str(route) for route in ROUTES
    }


def test_every_open_job_type_has_its_payload_and_its_result() -> None:
    whole = document()
    schemas = whole["components"]["schemas"]
    payloads = {name.removesuffix("Payload") for name in schemas if name.endswith("Payload")}
    assert payloads == set(map(camel, front_door.OPEN))
    assert set(schemas["CapturePaymentPayload"]["required"]) == {"order_id", "payment_intent_id"}
    assert schemas["CapturePaymentPayload"]["additionalProperties"] is False
    assert set(schemas["CapturePaymentResult"]["properties"]) == {"order_id", "charge_id"}


def test_every_path_may_refuse_for_want_of_an_identity_and_for_its_rate() -> None:
    for item in document()["paths"].values():
        for method in METHODS & item.keys():
            assert {"401", "429", "503"} <= item[method]["responses"].keys()


class Inner(BaseModel):
    """A part of a result."""

    number: int


class Outer(BaseModel):
    """A result with a part."""

    inner: Inner


def test_models_within_models_are_schemas_of_their_own_and_no_result_is_none() -> None:
    def whole(payload: Note, work: UnitOfWork) -> Outer: ...  # type: ignore[empty-body]  # declared, and never run

    def nothing(payload: Note, work: UnitOfWork) -> None: ...

    with_result, without = note_job(), note_job()
    object.__setattr__(with_result, "handler", whole)
    object.__setattr__(without, "handler", nothing)
    schemas = operations.schemas([with_result])
    assert schemas["NoteResult"]["properties"]["inner"] == {"$ref": "#/components/schemas/Inner"}
    assert "number" in schemas["Inner"]["properties"]
    assert "result" in schemas["NoteOperation"]["properties"]
    assert "result" not in operations.schemas([without])["NoteOperation"]["properties"]
