"""What one transaction of DynamoDB takes: counted before it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.errors import Refused
from shared.item import Create, Replace
from shared.limits import TRANSACTION_BYTES, TRANSACTION_ITEMS, check_item

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.commit import Reconciliation
    from shared.item import Write
    from shared.outbox import Posting

RECORD_ITEMS = 1  # the job record's own place


def check_transaction(
    writes: Sequence[Write], postings: Sequence[Posting], reconciliations: Sequence[Reconciliation]
) -> None:
    """Return if a job's commit fits into one transaction.

    Raises:
        Refused: with the arithmetic.
    """
    number = len(writes) + len(postings) + len(reconciliations) + RECORD_ITEMS
    if number > TRANSACTION_ITEMS:
        message = (
            f"{len(writes)} items + {len(postings)} messages + {len(reconciliations)} settled jobs + the job"
            f" record = {number}: DynamoDB commits {TRANSACTION_ITEMS} in one transaction; split the job."
        )
        raise Refused(message)
    size = sum(check_item(write.attributes, (), "item") for write in writes if isinstance(write, Create | Replace))
    size += sum(len(posting.body.encode()) for posting in postings)
    if size > TRANSACTION_BYTES:
        message = f"{size} bytes: DynamoDB commits {TRANSACTION_BYTES} in one transaction; split the job."
        raise Refused(message)
