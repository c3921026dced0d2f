"""Parts in DynamoDB: the blocks that say how each ended, the tally of them all, and the parent that waits and is woken.

A block is an item beside the job records, made by the checkpoint that accepted its parts: `states` holds a letter for each part
that has ended, by its number.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shared.backends.aws import translated
from shared.backends.dynamodb.conditional_writes import update
from shared.backends.dynamodb.job_record_conditions import HELD, conditional, demand_held, held_values
from shared.backends.dynamodb.job_record_item import LOOK_AT, UNENDED, read_view, watched_from, write_place, write_tally
from shared.backends.dynamodb.outbox import shard_of, write_posting
from shared.backends.dynamodb.reads import batch_get
from shared.backends.dynamodb.transactions import transact
from shared.clock import to_millis
from shared.errors import ClaimLost
from shared.job_record import SYSTEM, Hold, Status, operation_id
from shared.parts import Tally

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime
    from random import Random

    from shared.clock import Clock
    from shared.job_record import JobView
    from shared.outbox import Posting
    from shared.parts import Ended, Part, Split

KEPT = timedelta(days=400)  # a block: longer than a job may be scheduled ahead


def write_part(part: Part, now: datetime) -> dict[str, Any]:
    """The job record of a part: accepted, by nobody in particular."""
    texts = {
        "id": part.record,
        "status": Status.ACCEPTED.value,
        "owner": SYSTEM,
        "job_type": part.job_type,
        "idempotency_key": part.idempotency_key,
        "operation_id": operation_id(part.record),
        "fingerprint": part.fingerprint,
        "payload": part.payload,
        "accepted_by": part.token,
        "created_at": now.isoformat(),
        "updated_at": now.isoformat(),
        **({"trace": part.trace} if part.trace is not None else {}),
    }
    return {
        **{name: {"S": text} for name, text in texts.items()},
        "schema_version": {"N": str(part.version)},
        "attempts": {"N": "0"},
        "death": {"N": "0"},
        **write_place(part.place),
        **watched_from(part.record, now),
    }


def write_block(parts: Sequence[Part], now: datetime) -> dict[str, Any]:
    """The block of the parts of one checkpoint, of which none has ended."""
    first = parts[0]
    return {
        "id": {"S": first.place.block},
        "job_type": {"S": first.job_type},
        "first": {"N": str(first.place.number)},
        "count": {"N": str(len(parts))},
        "states": {"M": {}},
        "changes": {"N": "0"},
        "ttl": {"N": str(int((now + KEPT).timestamp()))},
    }


@dataclass(frozen=True, slots=True)
class DynamoDBParts:
    """The table of job records, as those see it who split jobs and count their parts."""

    client: Any
    table: str
    outbox_table: str
    clock: Clock
    random: Random

    def note(self, ended: Sequence[Ended]) -> None:
        """Note the ends, all of one block in one write."""
        blocks: dict[str, dict[int, str]] = {}
        for each in ended:
            blocks.setdefault(each.place.block, {})[each.place.number] = each.state.value
        for block, states in blocks.items():
            self._note(block, states)

    def _note(self, block: str, states: dict[int, str]) -> None:
        sets = ", ".join(f"states.#{number} = :{letter}" for number, letter in states.items())
        # A block that is gone was kept for a year longer than its job.
        update(
            self.client,
            TableName=self.table,
            Key={"id": {"S": block}},
            UpdateExpression=f"SET {sets} ADD changes :one",
            ConditionExpression="attribute_exists(id)",
            ExpressionAttributeNames={f"#{number}": str(number) for number in states},
            ExpressionAttributeValues={
                ":one": {"N": "1"},
                **{f":{letter}": {"S": letter} for letter in set(states.values())},
            },
        )

    def tally(self, split: Split) -> Tally:
        """Count the ends."""
        tally = Tally(split.parts)
        for block in self._blocks(split):
            states = [state["S"] for state in block["states"]["M"].values()]
            tally = tally.and_(states, int(block["changes"]["N"]))
        return tally

    def tell(self, parent: str, split: Split, tally: Tally) -> None:
        """Have the parent's record tell the tally."""
        update(
            self.client,
            TableName=self.table,
            Key={"id": {"S": parent}},
            UpdateExpression="SET tally = :tally",
            ConditionExpression=(
                "#split.#name = :name AND #status <> :running"
                " AND (attribute_not_exists(tally) OR tally.changes < :changes)"
            ),
            ExpressionAttributeNames={"#split": "split", "#name": "name", "#status": "status"},
            ExpressionAttributeValues={
                ":tally": write_tally(tally),
                ":name": {"S": split.name},
                ":running": {"S": Status.RUNNING.value},
                ":changes": {"N": str(tally.changes)},
            },
        )

    def wait(self, parent: JobView, look_at: datetime, now: datetime) -> None:
        """Have the parent wait for its parts."""
        values = {
            **held_values(Hold(parent.record, parent.token or "")),
            ":waiting": {"S": Status.WAITING.value},
            ":now": {"S": now.isoformat()},
            ":one": {"N": "1"},
            ":look_at": {"S": look_at.isoformat()},
            ":shard": {"S": str(shard_of(parent.record))},
        }
        change = (
            f"SET #status = :waiting, updated_at = :now, #attempts = #attempts - :one, {UNENDED} = :shard,"
            f" {LOOK_AT} = :look_at REMOVE #until"
        )
        self._change(parent, change, HELD, values, Status.WAITING)

    def wake(self, parent: JobView, posting: Posting, now: datetime) -> None:
        """Send the message of a parent that waits, in the transaction that has it wait no more."""
        watched = watched_from(parent.record, now)
        change = f"SET #status = :retrying, updated_at = :now_text, #not_before = :now, {UNENDED} = :shard, {LOOK_AT} = :look_at"
        condition = "#status = :waiting"
        values = {
            ":retrying": {"S": Status.RETRYING.value},
            ":waiting": {"S": Status.WAITING.value},
            ":now": {"N": str(to_millis(now))},
            ":now_text": {"S": now.isoformat()},
            ":shard": watched[UNENDED],
            ":look_at": watched[LOOK_AT],
        }
        record = self._conditional(parent, change, condition, values)
        message = {
            "TableName": self.outbox_table,
            "Item": write_posting(posting, now),
            "ConditionExpression": "attribute_not_exists(id)",
        }
        # A repeated request finds the parent that waits no more: its message is there, or somebody else's.
        if transact(self.client, [{"Update": record}, {"Put": message}], self.clock, self.random) is not None:
            text = "The job does not wait for its parts, or no longer."
            raise ClaimLost(text)

    def look_again(self, parent: JobView, look_at: datetime) -> None:
        """Look at a parent that waits then."""
        values = {":waiting": {"S": Status.WAITING.value}, ":look_at": {"S": look_at.isoformat()}}
        self._change(parent, f"SET {LOOK_AT} = :look_at", "#status = :waiting", values, None)

    def open_parts(self, split: Split) -> Iterator[JobView]:
        """The parts whose end is not noted."""
        for block in self._blocks(split):
            yield from self._parts(split, block, block["states"]["M"].keys())

    def all_parts(self, split: Split) -> Iterator[JobView]:
        """All parts."""
        for block in self._blocks(split):
            yield from self._parts(split, block, ())

    def view(self, record: str) -> JobView | None:
        """Read a record."""
        with translated("dynamodb"):
            answer = self.client.get_item(TableName=self.table, Key={"id": {"S": record}}, ConsistentRead=True)
        view = read_view(record, answer["Item"]) if "Item" in answer else None
        return None if view is None or view.has_expired(self.clock.now()) else view

    def _parts(self, split: Split, block: dict[str, Any], but: Collection[str]) -> Iterator[JobView]:
        """The records of a block's parts, but for those of these numbers."""
        first, count = int(block["first"]["N"]), int(block["count"]["N"])
        numbers = [number for number in range(first, first + count) if str(number) not in but]
        names = [split.record(block["job_type"]["S"], number) for number in numbers]
        for item in batch_get(
            self.client, self.table, [{"id": {"S": name}} for name in names], self.clock, self.random
        ):
            yield read_view(item["id"]["S"], item)

    def _blocks(self, split: Split) -> Iterator[dict[str, Any]]:
        keys = [{"id": {"S": split.block(number)}} for number in range(split.blocks)]
        yield from batch_get(self.client, self.table, keys, self.clock, self.random)

    def _conditional(self, parent: JobView, change: str, condition: str, values: dict[str, Any]) -> dict[str, Any]:
        place = {"TableName": self.table, "Key": {"id": {"S": parent.record}}}
        return {**place, **conditional(change, condition, values)}

    def _change(
        self, parent: JobView, change: str, condition: str, values: dict[str, Any], done: Status | None
    ) -> None:
        """Change a parent; a failed condition is a lost claim, unless an earlier try of this call has done it."""
        item = update(self.client, **self._conditional(parent, change, condition, values))
        demand_held(Hold(parent.record, parent.token or ""), item, done)
