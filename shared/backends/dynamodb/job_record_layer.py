"""The job record as a subclass of Powertools' idempotency store on DynamoDB.

The stock layer updates and deletes without a condition: a paused attempt that wakes up after another took over would
overwrite or delete the winner's record. Here every write names the attempt's token, and the completion is one
transaction with the unit of work. Powertools' seams carry it: `_put_record` claims, `_update_record` commits,
`_delete_record` gives back; the hashed key, the expiry and the clock are ours.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyItemAlreadyExistsError
from aws_lambda_powertools.utilities.idempotency.persistence.dynamodb import DynamoDBPersistenceLayer

from shared.backends.dynamodb.conditional_writes import update, updated
from shared.backends.dynamodb.job_record_claims import begin_anew, take
from shared.backends.dynamodb.job_record_ends import ended, given_back, settled, stepped
from shared.backends.dynamodb.job_record_item import read_view
from shared.backends.dynamodb.outbox import write_posting
from shared.backends.dynamodb.parts import write_block, write_part
from shared.backends.dynamodb.transactions import transact
from shared.claim import Granted, Step
from shared.claimed import claimed
from shared.job_record import LOST_AFTER, RETENTION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from random import Random

    from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord

    from shared.backends.dynamodb.items import DynamoDBItems
    from shared.backends.dynamodb.transactions import Cancelled
    from shared.claim import Claim
    from shared.clock import Clock
    from shared.commit import Checkpoint, Commit, Release
    from shared.job_record import Hold, JobView
    from shared.parts import Part


class JobRecordLayer(DynamoDBPersistenceLayer):
    """Powertools' store with our conditions. `for_attempt` gives each execution an object of its own.

    Powertools' seams take and give nothing of ours: what a write needs, and what became of it, stands in the object.

    Attributes:
        in_the_way: the record that kept it from being given back; None if nothing did.
        cancelled: what kept its end from being written; None if nothing did.
    """

    hold: Hold
    now: datetime
    clock: Clock
    random: Random
    claim: Claim
    commit: Commit
    release: Release
    seen: JobView | None = None
    granted: Granted
    in_the_way: dict[str, Any] | None = None
    cancelled: Cancelled | None = None

    def __init__(self, client: Any, table_name: str, items: DynamoDBItems, outbox_table: str) -> None:  # noqa: ANN401
        """Use this client and table; business items and outbox items join the transaction."""
        super().__init__(table_name=table_name, boto3_client=client)
        self.items = items
        self.outbox_table = outbox_table

    def for_attempt(self, hold: Hold, now: datetime, clock: Clock, random: Random) -> JobRecordLayer:
        """The same store for one execution: shares the client, holds the token; clock and random are for waits between tries."""
        layer = copy.copy(self)
        layer.hold, layer.now = hold, now
        layer.clock, layer.random = clock, random
        return layer

    def _get_hashed_idempotency_key(self, data: Any) -> str:  # noqa: ANN401, ARG002 - Powertools' signature
        return self.hold.record

    def _get_hashed_payload(self, data: Any) -> str:  # noqa: ANN401, ARG002 - Powertools' signature
        return self.claim.fingerprint

    def _get_expiry_timestamp(self) -> int:
        return int((self.now + RETENTION).timestamp())

    def _put_record(self, data_record: DataRecord) -> None:  # noqa: ARG002 - Powertools' signature
        """Claim: a new record, one more attempt, or the take-over of one whose deadline has passed."""
        self._write_claim(take(self.claim, self.now), Step.INCREMENT)

    def reset(self, seen: JobView) -> None:
        """Claim anew a record whose life is over, if it is as it was seen.

        Raises:
            IdempotencyItemAlreadyExistsError: it is not.
        """
        self._write_claim(begin_anew(self.claim, self.now, seen), Step.RESET)

    def _write_claim(self, expressions: dict[str, Any], step: Step) -> None:
        """Write the claim; keeps the grant, or what was seen of the record that stood in its way.

        DynamoDB gives the record as it was: of a new job nothing, which costs nothing to read.
        """
        is_done, item = updated(
            self.client,
            TableName=self.table_name,
            Key=self._get_key(self.hold.record),
            ReturnValues="ALL_OLD",
            **expressions,
        )
        # An item without a state is no job record (yet): the claim is tried again.
        seen = read_view(self.hold.record, item) if "status" in item else None
        if not is_done:
            self.seen = seen
            raise IdempotencyItemAlreadyExistsError(self.hold.record)
        self.granted = Granted(self.hold, claimed(step, seen, self.claim, self.now, LOST_AFTER), self.now)

    def _update_record(self, data_record: DataRecord) -> None:  # noqa: ARG002 - Powertools' signature
        """Commit: the record's end, the unit of work and the outbox in one transaction."""
        others = [
            self._at(each.record, settled(each, self.commit.tags, self.now)) for each in self.commit.reconciliations
        ]
        end = self._at(self.hold.record, ended(self.hold, self.commit, self.now))
        self.cancelled = self._transact([end, *others], self.commit, self.hold.token[:36])

    def write_step(self, checkpoint: Checkpoint, *, although_cancelling: bool = False) -> Cancelled | None:
        """A checkpoint: the record still held, what the step has staged and the outbox in one transaction."""
        held = self._at(
            self.hold.record, stepped(self.hold, checkpoint, self.now, although_cancelling=although_cancelling)
        )
        # Each transaction of an attempt has a name of its own.
        name = f"{self.hold.token[:24]}{'+' if although_cancelling else '-'}{checkpoint.number:011}"
        return self._transact([held, *self._split(checkpoint.parts)], checkpoint, name)

    def _split(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        """The entries of a checkpoint's parts: their block, and for each its record and its message."""
        if not parts:
            return []
        records = [write_block(parts, self.now), *(write_part(part, self.now) for part in parts)]
        fresh = {"ConditionExpression": "attribute_not_exists(id)"}
        return [
            *({"Put": {"TableName": self.table_name, "Item": item, **fresh}} for item in records),
            *(
                {"Put": {"TableName": self.outbox_table, "Item": write_posting(part.posting, self.now), **fresh}}
                for part in parts
            ),
        ]

    def _transact(self, records: list[dict[str, Any]], staged: Commit | Checkpoint, name: str) -> Cancelled | None:
        entries = [*records, *(self.items.entry(write) for write in staged.writes)]
        for number, posting in enumerate(staged.postings):
            item = write_posting(posting, self.now, number)
            fresh = {"ConditionExpression": "attribute_not_exists(id)"}
            entries.append({"Put": {"TableName": self.outbox_table, "Item": item, **fresh}})
        return transact(self.client, entries, self.clock, self.random, name)

    def _at(self, record: str, expressions: dict[str, Any]) -> dict[str, Any]:
        return {"Update": {"TableName": self.table_name, "Key": self._get_key(record), **expressions}}

    def _delete_record(self, data_record: DataRecord) -> None:  # noqa: ARG002 - Powertools' signature
        """Give back: the record stays, as retrying, with what went wrong and when the next attempt may begin."""
        expressions = given_back(self.hold, self.release, self.now)
        key = self._get_key(self.hold.record)
        self.in_the_way = update(self.client, TableName=self.table_name, Key=key, **expressions)
