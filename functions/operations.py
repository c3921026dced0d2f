"""The routes of operations: accept a job, tell how it stands, cancel it. What leaves the house is listed in `shown`.

`POST /operations/{job-type}` with an Idempotency-Key answers 202 at once; `GET /operations/{id}` reads the truth and causes
nothing; `DELETE` cancels what no attempt holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from functions.answers import answer, refusal
from functions.caller import body_of, for_owner, header_of
from shared.operation import OperationStatus
from shared.problem import HAS_ENDED, IS_RUNNING, NOT_FOUND

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

    from shared.intake import Intake
    from shared.operation import Operation
    from shared.telemetry import Telemetry

POLL_SECONDS = 2  # how soon a client may look again


@dataclass(frozen=True, slots=True)
class Operations:
    """Answers about operations to their owner. All of it raises what the intake raises."""

    intake: Intake
    telemetry: Telemetry

    def accept(self, owner: str, job_type: str, key: str | None, body: str) -> Response[str]:
        """Start a job, or find the one that this key has started."""
        receipt = self.intake.accept(owner, job_type, key, body)
        operation = receipt.operation
        self.telemetry.count("replayed" if receipt.replayed else "accepted", operation.job_type)
        headers = {
            "Location": f"/operations/{operation.operation_id}",
            "Retry-After": str(POLL_SECONDS),
            "Idempotent-Replayed": str(receipt.replayed).lower(),
        }
        return answer(shown(operation), headers, status=HTTPStatus.ACCEPTED)

    def look(self, owner: str, operation_id: str) -> Response[str]:
        """Tell how an operation stands; one of another owner is as absent as one that never was."""
        operation = self.intake.look(owner, operation_id)
        if operation is None:
            return refusal(NOT_FOUND)
        return answer(shown(operation), {} if operation.is_final else {"Retry-After": str(POLL_SECONDS)})

    def cancel(self, owner: str, operation_id: str) -> Response[str]:
        """Cancel what no attempt holds; a cancelled operation stays so, whatever messages still come."""
        operation = self.intake.cancel(owner, operation_id)
        if operation is None:
            return refusal(NOT_FOUND)
        if operation.status is OperationStatus.CANCELLED:
            self.telemetry.count("cancelled", operation.job_type)
            return answer(shown(operation))
        return refusal(HAS_ENDED if operation.is_final else IS_RUNNING)


def shown(operation: Operation) -> dict[str, object]:
    """What leaves the house: these fields and no others."""
    fields: dict[str, object] = {
        "operation_id": operation.operation_id,
        "job_type": operation.job_type,
        "status": operation.status.value,
    }
    if operation.result is not None:
        fields["result"] = operation.result
    if operation.error is not None:
        fields["error"] = operation.error
    return fields


def add_operations(app: APIGatewayHttpResolver, operations: Operations) -> None:
    """Add the routes."""

    @app.post("/operations/<job_type>")
    def accept(job_type: str) -> Response[str]:
        return for_owner(
            app,
            lambda owner, event: operations.accept(
                owner, job_type, header_of(event, "idempotency-key"), body_of(event)
            ),
        )

    @app.get("/operations/<operation_id>")
    def look(operation_id: str) -> Response[str]:
        return for_owner(app, lambda owner, _: operations.look(owner, operation_id))

    @app.delete("/operations/<operation_id>")
    def cancel(operation_id: str) -> Response[str]:
        return for_owner(app, lambda owner, _: operations.cancel(owner, operation_id))
