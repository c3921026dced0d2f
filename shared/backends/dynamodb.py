"""Business items in DynamoDB: consistent reads, and the conditional writes of a commit as transaction entries."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, assert_never

from boto3.dynamodb.types import Binary, TypeDeserializer, TypeSerializer

from shared.backends.aws import translated
from shared.clock import to_millis
from shared.errors import SettingsError
from shared.item import Create, Delete, Replace, Stored, Unchanged, Write
from shared.job_record import EXPIRY_MARGIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.item import Key
    from shared.limits import Value
    from shared.table import Table

VERSION, DELETED, TTL = "version", "deleted", "ttl"
_write = TypeSerializer().serialize
_read = TypeDeserializer().deserialize


@dataclass(frozen=True, slots=True)
class DynamoDBItems:
    """Business tables, by logical name.

    Attributes:
        client: a DynamoDB client.
        tables: physical names by logical name.
    """

    client: Any
    tables: Mapping[str, str]

    def read(self, table: Table, key: Key) -> Stored | None:
        """Read an item or its tombstone, consistently."""
        with translated("dynamodb"):
            answer = self.client.get_item(TableName=self.name_of(table), Key=wire_key(table, key), ConsistentRead=True)
        item = answer.get("Item")
        if item is None:
            return None
        attributes = {name: plain(_read(value)) for name, value in item.items()}
        version = int(str(attributes.pop(VERSION, 0)))
        deleted = attributes.pop(DELETED, False) is True
        attributes.pop(TTL, None)
        return Stored(attributes, version, deleted)

    def name_of(self, table: Table) -> str:
        """The physical name.

        Raises:
            SettingsError: the function was deployed without it.
        """
        try:
            return self.tables[table.name]
        except KeyError:
            message = f"Table {table.name!r} is not among the settings: declare it in the job's `uses` and deploy."
            raise SettingsError(message) from None

    def entry(self, write: Write) -> dict[str, Any]:
        """The transaction entry of a staged write, with its condition."""
        name = self.name_of(write.table)
        key = wire_key(write.table, write.key)
        match write:
            case Create():
                return {"Update": {"TableName": name, "Key": key, **_create(write)}}
            case Replace():
                item = {attribute: _write(value) for attribute, value in write.attributes.items()}
                item[VERSION] = {"N": str(write.seen + 1)}
                return {"Put": {"TableName": name, "Item": item, **_unchanged(write.table, write.seen)}}
            case Delete():
                item = {
                    **key,
                    VERSION: {"N": str(write.seen + 1)},
                    DELETED: {"BOOL": True},
                    TTL: {"N": str(to_millis(write.kept_until + EXPIRY_MARGIN) // 1000)},
                }
                return {"Put": {"TableName": name, "Item": item, **_unchanged(write.table, write.seen)}}
            case Unchanged() if write.seen is None:
                condition = {
                    "ConditionExpression": "attribute_not_exists(#key)",
                    "ExpressionAttributeNames": {"#key": write.table.key},
                }
                return {"ConditionCheck": {"TableName": name, "Key": key, **condition}}
            case Unchanged():
                return {"ConditionCheck": {"TableName": name, "Key": key, **_unchanged(write.table, write.seen)}}
            case _:
                assert_never(write)


def wire_key(table: Table, key: Key) -> dict[str, Any]:
    """The key in DynamoDB's notation."""
    names = (table.key,) if table.sort_key is None else (table.key, table.sort_key)
    return {name: {"S": value} for name, value in zip(names, key, strict=True)}


def plain(value: Any) -> Value:  # noqa: ANN401 - whatever the deserializer gives
    """Values as handlers see them: integers as int, bytes as bytes, other numbers as Decimal."""
    match value:
        case Decimal() if value == value.to_integral_value():
            return int(value)
        case Binary():
            content: bytes = value.value  # type: ignore[attr-defined]
            return content
        case dict():
            return {name: plain(inner) for name, inner in value.items()}
        case list():
            return [plain(inner) for inner in value]
        case set():
            return frozenset(str(element) for element in value)
        case _:
            return value  # type: ignore[no-any-return]


def _create(write: Create) -> dict[str, Any]:
    """An update that starts a new item, also over the tombstone of an old one, whose version it continues."""
    names = {"#key": write.table.key, "#version": VERSION, "#deleted": DELETED, "#ttl": TTL}
    values: dict[str, Any] = {":none": {"N": "0"}, ":one": {"N": "1"}, ":true": {"BOOL": True}}
    sets = ["#version = if_not_exists(#version, :none) + :one"]
    keys = {write.table.key, write.table.sort_key}
    for place, (name, value) in enumerate((n, v) for n, v in write.attributes.items() if n not in keys):
        names[f"#a{place}"] = name
        values[f":a{place}"] = _write(value)
        sets.append(f"#a{place} = :a{place}")
    return {
        "UpdateExpression": f"SET {', '.join(sets)} REMOVE #deleted, #ttl",
        "ConditionExpression": "attribute_not_exists(#key) OR #deleted = :true",
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


def _unchanged(table: Table, seen: int | None) -> dict[str, Any]:
    """The condition that an item still has the version seen; 0 stands for one written without a version."""
    if seen:
        return {
            "ConditionExpression": "#version = :seen",
            "ExpressionAttributeNames": {"#version": VERSION},
            "ExpressionAttributeValues": {":seen": {"N": str(seen)}},
        }
    return {
        "ConditionExpression": "attribute_exists(#key) AND attribute_not_exists(#version)",
        "ExpressionAttributeNames": {"#key": table.key, "#version": VERSION},
    }
