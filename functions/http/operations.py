"""The routes of operations: accept a job, tell how it stands, list, cancel. What leaves the house is spelled in `shown`.

`POST /operations/{job-type}` with an Idempotency-Key answers 202 at once; `GET /operations/{id}` reads the truth and causes
nothing; `GET /operations` lists the owner's, newest first; `DELETE` cancels what has not begun.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from functions.http.answers import PROBLEM, answer, refusal
from functions.http.caller import body_of, for_owner, header_of, query_of, trace_of
from functions.http.problem import HAS_BEGUN, HAS_ENDED, NOT_FOUND, OUTDATED
from shared.errors import Malformed, Unavailable
from shared.intake.operation import OperationStatus, operation_of, record_of
from shared.intake.owned_jobs import MOST_LISTED, Place
from shared.intake.request import FIRST_VERSION, Outdated
from shared.message import check_run_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

    from functions.http.resources import Conditions
    from shared.clock import Clock
    from shared.intake.operation import Operation
    from shared.intake.owned_jobs import Listed, OwnedJobs
    from shared.intake.request import Intake
    from shared.intake.shedding import Shedding
    from shared.telemetry import Telemetry

ENDS = ("succeeded", "failed", "cancelled", "dead_lettered")  # of parts
POLL_SECONDS = 2  # how soon a client may look again
USUALLY_LISTED = 20


@dataclass(frozen=True, slots=True)
class Operations:
    """Answers about operations to their owner. All of it raises what the intake raises."""

    intake: Intake
    jobs: OwnedJobs
    clock: Clock
    telemetry: Telemetry
    conditions: Conditions
    shedding: Shedding

    def accept(self, owner: str, job_type: str, key: str | None, event: Mapping[str, Any]) -> Response[str]:
        """Start a job, or find the one that this key has started; a job type that is closed is told before anything else."""
        if job_type in self.intake.job_types.by_name:
            self._demand_open(job_type)
        condition = self.conditions.of(job_type, event)
        query = query_of(event, "run_at", "version")
        run_at, version = _time_of(query.get("run_at")), _version_of(query.get("version"))
        trace = trace_of(event)
        try:
            receipt = self.intake.accept(
                owner,
                job_type,
                key,
                body_of(event),
                version=version,
                run_at=run_at,
                trace=trace,
                condition=condition,
            )
        except Outdated as outdated:
            headers = {} if outdated.etag is None else {"ETag": outdated.etag}
            return answer(OUTDATED.body, headers, status=OUTDATED.status, kind=PROBLEM)
        operation = receipt.operation
        result = "replayed" if receipt.replayed else "accepted"
        self.telemetry.count(result, operation.job_type)
        self.telemetry.job(
            result=result,
            job_type=operation.job_type,
            operation_id=operation.operation_id,
            record=record_of(operation.operation_id),  # the hash of owner, job type and idempotency key
            trace_id=receipt.trace_id,
            request_id=event["requestContext"].get("requestId"),
        )
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

    def list(self, owner: str, query: Mapping[str, str]) -> Response[str]:
        """Tell of the owner's operations, newest first: how each stands now, without results.

        Raises:
            Malformed: the query.
        """
        limit = _limit_of(query.get("limit"))
        after = Place.read(query["next"], owner) if "next" in query else None
        now = self.clock.now()
        page = self.jobs.page(owner, limit, after, now)
        body: dict[str, object] = {"operations": [_listed(job, now) for job in page.jobs]}
        if page.next is not None:
            body["next"] = page.next.written(owner)
        return answer(body)

    def cancel(self, owner: str, operation_id: str) -> Response[str]:
        """Cancel what has not begun; a cancelled operation stays so, whatever messages still come."""
        operation = self.intake.cancel(owner, operation_id)
        if operation is None:
            return refusal(NOT_FOUND)
        if operation.cancelling:
            return answer(shown(operation), {"Retry-After": str(POLL_SECONDS)}, status=HTTPStatus.ACCEPTED)
        if operation.status is OperationStatus.CANCELLED:
            self.telemetry.count("cancelled", operation.job_type)
            return answer(shown(operation))
        return refusal(HAS_ENDED if operation.is_final else HAS_BEGUN)

    def _demand_open(self, job_type: str) -> None:
        try:
            self.shedding.check(job_type)
        except Unavailable:
            self.telemetry.count("shed", job_type)
            raise


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
    if operation.run_at is not None:
        fields["run_at"] = operation.run_at.isoformat()
    if (progress := operation.progress) is not None:
        known = {} if progress.total is None else {"total": progress.total}
        fields["progress"] = {"done": progress.done, **known, "note": progress.note, "at": progress.at.isoformat()}
    if (parts := operation.parts) is not None:
        fields["parts"] = {"total": parts.total, **{name: getattr(parts, name) for name in ENDS}}
    if operation.cancelling:
        fields["cancelling"] = True
    return fields


def _listed(job: Listed, now: datetime) -> dict[str, object]:
    fields = shown(operation_of(job.view, now))
    return {name: fields[name] for name in ("operation_id", "job_type", "status")} | {
        "created_at": job.created_at.isoformat()
    }


def _time_of(text: str | None) -> datetime | None:
    """A moment, as RFC 3339 writes it.

    Raises:
        Malformed: it is none, has no zone, or is beyond all reckoning.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+"))  # a plus that was not encoded
    except ValueError:
        moment = datetime.min  # noqa: DTZ901 - a moment without a zone is what is refused below
    if moment.tzinfo is None:
        raise Malformed("invalid-query", "run_at: a_time_with_its_zone")
    check_run_at(moment)  # also so that it has a time in UTC
    return moment.astimezone(UTC)


def _version_of(text: str | None) -> int:
    if text is None:
        return FIRST_VERSION
    if not re.fullmatch("[1-9][0-9]{0,5}", text):
        raise Malformed("invalid-query", "version: a_number_from_1")
    return int(text)


def _limit_of(text: str | None) -> int:
    if text is None:
        return USUALLY_LISTED
    if not re.fullmatch("[1-9][0-9]{0,2}", text) or int(text) > MOST_LISTED:
        raise Malformed("invalid-query", f"limit: from_1_to_{MOST_LISTED}")
    return int(text)


def add_operations(app: APIGatewayHttpResolver, operations: Operations) -> None:
    """Add the routes."""

    @app.post("/operations/<job_type>")
    def accept(job_type: str) -> Response[str]:
        return for_owner(
            app,
            lambda owner, event: operations.accept(owner, job_type, header_of(event, "idempotency-key"), event),
        )

    @app.get("/operations")
    def list_() -> Response[str]:
        return for_owner(app, lambda owner, event: operations.list(owner, query_of(event, "limit", "next")))

    @app.get("/operations/<operation_id>")
    def look(operation_id: str) -> Response[str]:
        return for_owner(app, lambda owner, _: operations.look(owner, operation_id))

    @app.delete("/operations/<operation_id>")
    def cancel(operation_id: str) -> Response[str]:
        return for_owner(app, lambda owner, _: operations.cancel(owner, operation_id))
