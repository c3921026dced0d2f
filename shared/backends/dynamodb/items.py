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
from shared.limits import NUMBER_DIGITS, normal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.item import Key
    from shared.limits import Value
    from shared.table import Table

VERSION, DELETED, TTL = "version", "deleted", "ttl"
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
        return None if item is None else stored_of(item)

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
                return {"Update": {"TableName": name, "Key": key, **_replace(write)}}
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


def stored_of(item: Mapping[str, Any]) -> Stored:
    """An item, or its tombstone, out of DynamoDB's notation."""
    attributes = {name: plain(_read(value)) for name, value in item.items()}
    version = int(str(attributes.pop(VERSION, 0)))
    deleted = attributes.pop(DELETED, False) is True
    attributes.pop(TTL, None)
    return Stored(attributes, version, deleted)


def wire_key(table: Table, key: Key) -> dict[str, Any]:
    """The key in DynamoDB's notation."""
    return {name: {"S": value} for name, value in zip(table.key_names, key, strict=True)}


class _Exact(TypeSerializer):
    """boto3's serializer, with every number in its shortest form: its own refuses 10**50 for having 51 digits."""

    def _serialize_n(self, value: int | Decimal) -> str:
        return f"{normal(value):E}"


_write = _Exact().serialize


def plain(value: Any) -> Value:  # noqa: ANN401 - whatever the deserializer gives
    """Values as handlers see them: integers as int, bytes as bytes, other numbers as Decimal."""
    match value:
        case Decimal() if value == value.to_integral_value() and value.adjusted() < NUMBER_DIGITS:
            return int(value)
        case Binary():
            content: bytes = value.value  # type: ignore[attr-defined]
            return content
        case dict():
            return {name: plain(inner) for name, inner in value.items()}
        case list():
            return [plain(inner) for inner in value]
        case set():
            return frozenset(plain(element) for element in value)  # type: ignore[misc]
        case _:
            return value  # type: ignore[no-any-return]


def _create(write: Create) -> dict[str, Any]:
    """An update that starts a new item, also over the tombstone of an old one, whose version it continues."""
    names, values, sets = _sets(write.table, write.attributes, frozenset(write.attributes))
    return {
        "UpdateExpression": f"SET {', '.join(sets)} REMOVE #deleted, #ttl",
        "ConditionExpression": "attribute_not_exists(#key) OR #deleted = :true",
        "ExpressionAttributeNames": {**names, "#key": write.table.key, "#deleted": DELETED, "#ttl": TTL},
        "ExpressionAttributeValues": {**values, ":true": {"BOOL": True}},
    }


def _replace(write: Replace) -> dict[str, Any]:
    """An update of the changed attributes alone, also of a tombstone that was read."""
    names, values, sets = _sets(write.table, write.attributes, write.changed)
    still = _unchanged(write.table, write.seen)
    return {
        "UpdateExpression": f"SET {', '.join(sets)} REMOVE #deleted, #ttl",
        "ConditionExpression": still["ConditionExpression"],
        "ExpressionAttributeNames": {
            **names,
            **still["ExpressionAttributeNames"],
            "#deleted": DELETED,
            "#ttl": TTL,
        },
        "ExpressionAttributeValues": {**values, **still["ExpressionAttributeValues"]},
    }


def _sets(
    table: Table, attributes: Mapping[str, Value], changed: frozenset[str]
) -> tuple[dict[str, str], dict[str, Any], list[str]]:
    """Names, values and assignments of an update that writes the changed attributes and the next version."""
    names, sets = {"#version": VERSION}, ["#version = if_not_exists(#version, :none) + :one"]
    values: dict[str, Any] = {":none": {"N": "0"}, ":one": {"N": "1"}}
    for place, name in enumerate(sorted(changed - set(table.key_names))):
        names[f"#a{place}"] = name
        values[f":a{place}"] = _write(attributes[name])
        sets.append(f"#a{place} = :a{place}")
    return names, values, sets


def _unchanged(table: Table, seen: int) -> dict[str, Any]:
    """The condition that an item still has the version seen; 0 stands for one written without a version, too."""
    still = (
        "#version = :seen"
        if seen
        else "attribute_exists(#key) AND (attribute_not_exists(#version) OR #version = :seen)"
    )
    names = {"#version": VERSION} if seen else {"#key": table.key, "#version": VERSION}
    return {
        "ConditionExpression": still,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {":seen": {"N": str(seen)}},
    }
