"""What one transaction of DynamoDB takes: counted before it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.errors import Refused
from shared.limits import TRANSACTION_BYTES, TRANSACTION_ITEMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.commit import Reconciliation
    from shared.outbox import Posting
    from shared.parts import Part

RECORD_ITEMS = 1  # the job record's own place


def check_transaction(
    writes: int,
    size: int,
    postings: Sequence[Posting],
    reconciliations: Sequence[Reconciliation],
    parts: Sequence[Part] = (),
) -> None:
    """Return if a job's commit or checkpoint fits into one transaction. A part is two items, and its block is one more.

    Args:
        writes: how many items are written or have to be unchanged.
        size: bytes of the items written.
        postings: messages that go along.
        reconciliations: of unknown jobs.
        parts: that the job is split into.

    Raises:
        Refused: with the arithmetic.
    """
    split = 2 * len(parts) + bool(parts)
    number = writes + len(postings) + len(reconciliations) + split + RECORD_ITEMS
    if number > TRANSACTION_ITEMS:
        of_parts = f" + {split} of {len(parts)} parts" if parts else ""
        message = (
            f"{writes} items + {len(postings)} messages + {len(reconciliations)} settled jobs{of_parts} + the job"
            f" record = {number}: DynamoDB commits {TRANSACTION_ITEMS} in one transaction; take a checkpoint in between."
        )
        raise Refused(message)
    size += sum(len(posting.body.encode()) for posting in postings)
    size += sum(len(part.payload.encode()) + len(part.posting.body.encode()) for part in parts)
    if size > TRANSACTION_BYTES:
        message = (
            f"{size} bytes: DynamoDB commits {TRANSACTION_BYTES} in one transaction; take a checkpoint in between."
        )
        raise Refused(message)
