"""What a handler's result commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from shared.commit import Commit
from shared.errors import Refused
from shared.job_record import Status
from shared.limits import check_value
from shared.outcome import Failed
from shared.strict_json import json_text

if TYPE_CHECKING:
    from shared.unit_of_work import UnitOfWork

RESULT_BYTES = 64 * 1024  # kept in the job record beside the payload


def commit_of(result: object, work: UnitOfWork) -> Commit:
    """What a handler's result commits.

    Raises:
        Refused: the result cannot be kept as JSON, or is too large.
        Unavailable: it was to be deposited, and the store did not answer.
    """
    if work.staged.parts:
        message = f"{len(work.staged.parts)} parts are staged and would be lost: take a checkpoint before the job ends."
        raise Refused(message)
    status = Status.FAILED if isinstance(result, Failed) else Status.COMPLETED
    match result:
        case None:
            text = None
        case Failed(code=code, detail=detail):
            text = _json_of({"code": code, "detail": detail})
        case BaseModel():
            text = _json_of(result.model_dump(mode="json"))
        case _:
            text = _json_of(result)
    if text is not None and work.deposits is not None:
        text = work.deposits.fit(text, RESULT_BYTES)
    if text is not None and len(text.encode()) > RESULT_BYTES:
        message = f"The result has {len(text.encode())} bytes, {RESULT_BYTES} are kept: return a reference."
        raise Refused(message)
    tags = tuple(tag.bare for tag in work.staged.tags)
    return Commit(
        status,
        text,
        tags,
        work.staged.writes,
        work.staged.postings,
        work.staged.reconciliations,
        progress=work.steps.progress,
        tally=work.steps.splitting.counted,
    )


def _json_of(result: object) -> str:
    check_value(result, "the result")
    try:
        return json_text(result)
    except (TypeError, ValueError) as error:
        message = (
            f"The result cannot be kept as JSON ({type(error).__name__}): return str, int, bool, None, list or dict."
        )
        raise Refused(message) from error
