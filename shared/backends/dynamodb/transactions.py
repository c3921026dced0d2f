"""Transactions of DynamoDB: tried again while others are in the way; what keeps one from being written is told entry by entry."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from shared.backends.aws import code_of, translated
from shared.errors import Refused, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from shared.clock import Clock

TRIES = 4
WAIT = timedelta(milliseconds=40)
BUSY = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "TransactionInProgress"})
REFUSALS = frozenset({"ValidationError", "ItemCollectionSizeLimitExceeded"})
CONDITION_FAILED = "ConditionalCheckFailed"


class Busy(StoreUnavailable):
    """Others were in the way of the transaction, each time: nothing was written."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Nothing was written: some items are not as the transaction wants them.

    Attributes:
        in_the_way: for each entry whose condition failed the item as it is, empty if there is none or if the entry does not ask
            for it; None for each other entry.
    """

    in_the_way: tuple[dict[str, Any] | None, ...]


def transact(
    client: Any,  # noqa: ANN401 - as `client` gives it
    entries: Sequence[dict[str, Any]],
    clock: Clock,
    random: Random,
    name: str | None = None,
) -> Cancelled | None:
    """Write all entries together; None where that is done.

    What a lost reply means is the caller's affair: under a name DynamoDB itself knows a transaction that it has written, without
    one its own conditions must.

    Args:
        client: of DynamoDB.
        entries: as TransactWriteItems takes them.
        clock: that waits between two tries.
        random: for those waits.
        name: of the transaction, for DynamoDB's own eyes (ClientRequestToken), the same for each try.

    Raises:
        Busy: others were in the way at every try.
        Refused: DynamoDB refuses a value.
        StoreUnavailable: no answer; it may be written.
    """
    more = {} if name is None else {"ClientRequestToken": name}
    tried = 0
    while True:
        try:
            with translated("dynamodb"):
                client.transact_write_items(TransactItems=entries, **more)
        except ClientError as error:
            if code_of(error) != "TransactionCanceledException":
                raise
            tried += 1
            cancelled = _read(error, len(entries), last=tried == TRIES)
            if cancelled is not None:
                return cancelled
        else:
            return None
        clock.sleep(WAIT.total_seconds() * 2**tried * random.random())


def _read(error: ClientError, count: int, *, last: bool) -> Cancelled | None:
    """Read the reasons; None where another try may do. A failed condition counts before all else: trying again cannot help it."""
    reasons: list[dict[str, Any]] = error.response.get("CancellationReasons", [])  # type: ignore[assignment]
    reasons = [*reasons, *[{}] * (count - len(reasons))]  # there may be none at all
    codes = [str(reason.get("Code", "None")) for reason in reasons]
    if CONDITION_FAILED in codes:
        told = zip(codes, reasons, strict=True)
        return Cancelled(tuple(reason.get("Item", {}) if code == CONDITION_FAILED else None for code, reason in told))
    if REFUSALS.intersection(codes):
        message = f"DynamoDB refuses the transaction ({', '.join(codes)})."
        raise Refused(message) from error
    if last or not BUSY.intersection(codes):
        message = f"DynamoDB is busy with the same items ({', '.join(codes)})."
        raise Busy(message, dependency="dynamodb") from error
    return None
