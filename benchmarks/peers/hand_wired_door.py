"""A front door as people wire it: Powertools' HTTP resolver, an idempotent function, and a message sent to SQS."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = "application/json"
ACCEPTED, MALFORMED = 202, 400


class SyncInventory(BaseModel):
    """The payload of our own job of that name."""

    model_config = ConfigDict(extra="forbid")

    user_id: str = Field(min_length=1, max_length=200)


def front_door(dynamodb: Any, sqs: Any, table: str, url: str) -> Callable[[dict[str, Any], Any], dict[str, Any]]:  # noqa: ANN401 - boto3 builds the classes
    """The Lambda handler."""
    app, logger, metrics = APIGatewayHttpResolver(), Logger(service="door"), Metrics(namespace="peer", service="door")
    config = IdempotencyConfig(event_key_jmespath="[owner, key]", expires_after_seconds=30 * 86400)

    @idempotent_function(  # type: ignore[untyped-decorator]  # Powertools gives it no types
        data_keyword_argument="request",
        persistence_store=DynamoDBPersistenceLayer(table, boto3_client=dynamodb),
        config=config,
    )
    def accept(request: dict[str, Any]) -> dict[str, str]:
        operation = str(uuid.uuid4())
        sqs.send_message(QueueUrl=url, MessageBody=json.dumps({**request, "operation_id": operation}))
        return {"operation_id": operation, "job_type": request["job_type"], "status": "pending"}

    @app.post("/operations/<job_type>")
    def start(job_type: str) -> Response[str]:
        event = app.current_event
        try:
            payload = SyncInventory.model_validate_json(event.body or "")
        except ValidationError:
            return Response(MALFORMED, JSON, "{}")
        owner = event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"]
        key = event.headers["idempotency-key"]
        request = {"owner": owner, "key": key, "job_type": job_type, "payload": payload.model_dump()}
        operation = accept(request=request)
        metrics.add_metric(name="accepted", unit=MetricUnit.Count, value=1)
        logger.info("job", extra={"result": "accepted", **operation})
        headers = {"Location": f"/operations/{operation['operation_id']}", "Retry-After": "2"}
        return Response(ACCEPTED, JSON, json.dumps(operation), headers)

    @metrics.log_metrics
    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - Lambda's
        config.register_lambda_context(context)
        logger.append_keys(function_request_id=context.aws_request_id)
        return app.resolve(event, context)

    wired: Callable[[dict[str, Any], Any], dict[str, Any]] = handler
    return wired
