"""The HTTP front door: accepts jobs from clients that repeat themselves, and tells them how their operations stand.

`POST /operations/{job-type}` with an Idempotency-Key answers 202 at once; `GET /operations/{id}` reads the truth and causes
nothing; `DELETE` cancels what no attempt holds. The owner is the identity that API Gateway has verified, never anything that the client says.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from dataclasses import dataclass
from http import HTTPStatus
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from functions import payments
from shared.backends.acceptances import DynamoDBAcceptances
from shared.backends.aws import client
from shared.backends.dynamodb import DynamoDBItems
from shared.backends.dynamodb_records import DynamoDBJobRecords
from shared.backends.fences import DynamoDBFences
from shared.backends.job_record_layer import JobRecordLayer
from shared.backends.powertools import PowertoolsTelemetry
from shared.clock import Surroundings, SystemClock, random_token
from shared.errors import Malformed, Unavailable
from shared.intake import Intake
from shared.job import JobTypes
from shared.operation import OperationStatus
from shared.problem import HAS_ENDED, IS_RUNNING, NOT_FOUND, UNAUTHENTICATED, Problem, problem_of
from shared.settings import Settings
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.operation import Operation
    from shared.telemetry import Telemetry

WORKERS = (payments.WORKER,)
OPEN = {job.name: worker.name for worker in WORKERS for job in worker.jobs if job.open_to_clients}
POLL_SECONDS = 2  # how soon a client may look again
NEVER_STORED = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True)
class FrontDoor:
    """Answers requests; what it needs is given to it."""

    intake: Intake
    telemetry: Telemetry

    def accept(self, owner: str, job_type: str, key: str | None, body: str) -> Response[str]:
        """Start a job, or find the one that this key has started."""
        try:
            receipt = self.intake.accept(owner, job_type, key, body)
        except (Malformed, Unavailable) as error:
            return self._refuse(problem_of(error))
        operation = receipt.operation
        self.telemetry.count("replayed" if receipt.replayed else "accepted", operation.job_type)
        headers = {
            "Location": f"/operations/{operation.operation_id}",
            "Retry-After": str(POLL_SECONDS),
            "Idempotent-Replayed": str(receipt.replayed).lower(),
        }
        return _answer(HTTPStatus.ACCEPTED, _shown(operation), headers)

    def look(self, owner: str, operation_id: str) -> Response[str]:
        """Tell how an operation stands; one of another owner is as absent as one that never was."""
        try:
            operation = self.intake.look(owner, operation_id)
        except Unavailable as error:
            return self._refuse(problem_of(error))
        if operation is None:
            return self._refuse(NOT_FOUND)
        headers = {} if operation.is_final else {"Retry-After": str(POLL_SECONDS)}
        return _answer(HTTPStatus.OK, _shown(operation), headers)

    def cancel(self, owner: str, operation_id: str) -> Response[str]:
        """Cancel what no attempt holds; a cancelled operation stays so, whatever messages still come."""
        try:
            operation = self.intake.cancel(owner, operation_id)
        except Unavailable as error:
            return self._refuse(problem_of(error))
        if operation is None:
            return self._refuse(NOT_FOUND)
        if operation.status is OperationStatus.CANCELLED:
            self.telemetry.count("cancelled", operation.job_type)
            return _answer(HTTPStatus.OK, _shown(operation), {})
        return self._refuse(HAS_ENDED if operation.is_final else IS_RUNNING)

    def _refuse(self, problem: Problem) -> Response[str]:
        self.telemetry.count("refused", NO_JOB_TYPE)
        return refusal(problem)


def refusal(problem: Problem) -> Response[str]:
    """A problem as an answer."""
    headers: dict[str, str] = {}
    if problem.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(problem.retry_after.total_seconds())))
    return _answer(problem.status, problem.body, headers, "application/problem+json")


def _answer(
    status: HTTPStatus, body: Mapping[str, object], headers: Mapping[str, str], kind: str = "application/json"
) -> Response[str]:
    return Response(status.value, kind, json.dumps(body, ensure_ascii=False), {**NEVER_STORED, **headers})


def _shown(operation: Operation) -> dict[str, object]:
    """What leaves the house: these fields and no others."""
    shown: dict[str, object] = {
        "operation_id": operation.operation_id,
        "job_type": operation.job_type,
        "status": operation.status.value,
    }
    if operation.result is not None:
        shown["result"] = operation.result
    if operation.error is not None:
        shown["error"] = operation.error
    return shown


def owner_of(event: Mapping[str, Any]) -> str | None:
    """The caller whom API Gateway's JWT authoriser, or IAM, has verified; None if nobody has."""
    authorizer = (event.get("requestContext") or {}).get("authorizer") or {}
    claims = (authorizer.get("jwt") or {}).get("claims") or {}
    subject = claims.get("sub")
    if isinstance(subject, str) and subject.strip():
        return f"jwt:{claims.get('iss', '')}:{subject}"  # a subject is unique within its issuer alone
    arn = (authorizer.get("iam") or {}).get("userArn")
    return f"iam:{arn}" if isinstance(arn, str) and arn else None


def body_of(event: Mapping[str, Any]) -> str:
    """The body's text.

    Raises:
        Malformed: it is no text in UTF-8.
    """
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return str(body)
    try:
        return base64.b64decode(body, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise Malformed("malformed-encoding", "the body is no text in UTF-8") from error


def connect(settings: Settings) -> FrontDoor:
    """A front door for the stack that the settings name."""
    clock, random, dynamodb = SystemClock(), SystemRandom(), client("dynamodb")
    layer = JobRecordLayer(dynamodb, settings.jobs_table, DynamoDBItems(dynamodb, {}), settings.outbox_table)
    fences = DynamoDBFences(dynamodb, settings.jobs_table, clock, random)
    intake = Intake(
        JobTypes.of(*(job for worker in WORKERS for job in worker.jobs if job.open_to_clients)),
        OPEN,
        DynamoDBAcceptances(dynamodb, settings.jobs_table, settings.outbox_table, clock, random),
        DynamoDBJobRecords(layer, fences, clock, random),
        Surroundings(clock, random, random_token),
    )
    return FrontDoor(intake, PowertoolsTelemetry("front-door"))


def routes(door: FrontDoor) -> APIGatewayHttpResolver:
    """The routes of the API."""
    app = APIGatewayHttpResolver()

    @app.post("/operations/<job_type>")
    def accept(job_type: str) -> Response[str]:
        event = app.current_event.raw_event
        owner = owner_of(event)
        if owner is None:
            return refusal(UNAUTHENTICATED)
        headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
        try:
            body = body_of(event)
        except Malformed as error:
            return refusal(problem_of(error))
        return door.accept(owner, job_type, headers.get("idempotency-key"), body)

    @app.get("/operations/<operation_id>")
    def look(operation_id: str) -> Response[str]:
        owner = owner_of(app.current_event.raw_event)
        return refusal(UNAUTHENTICATED) if owner is None else door.look(owner, operation_id)

    @app.delete("/operations/<operation_id>")
    def cancel(operation_id: str) -> Response[str]:
        owner = owner_of(app.current_event.raw_event)
        return refusal(UNAUTHENTICATED) if owner is None else door.cancel(owner, operation_id)

    @app.not_found
    def absent(_: Exception) -> Response[str]:
        return refusal(NOT_FOUND)

    return app


_doors: list[tuple[FrontDoor, APIGatewayHttpResolver]] = []


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - the Lambda context
    """Answer one request."""
    if not _doors:
        door = connect(Settings.from_environ(os.environ))
        _doors.append((door, routes(door)))
    door, app = _doors[0]
    door.telemetry.invocation(context.aws_request_id)
    try:
        return app.resolve(event, context)
    finally:
        door.telemetry.flush()
