"""`python -m tests.drills.far_aws PORT SECONDS`: moto's server, to which each call travels for that long.

moto copies the whole table for each entry of a transaction, to roll it back, and measures the whole item for each attribute that it
copies: a transaction of fifty takes longer than fifty single writes, which on AWS it does not. Here it keeps what it needs.
"""

from __future__ import annotations

import copy
import sys
from types import SimpleNamespace
from typing import Any

from moto.dynamodb import models
from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.models.table import Table

from tests.moto_server import MotoServer

_of_this_transaction: dict[str, Any] = {}
_moto: Any = models
_write = _moto.DynamoDBBackend.transact_write_items


def transact(backend: Any, entries: list[dict[str, Any]]) -> None:
    """A transaction, with one copy of each table for all of its entries."""
    _of_this_transaction.clear()
    _write(backend, entries)


def kept(value: Any) -> Any:
    """A copy of an item, or of a table whose items can be put back; of anything else a whole one."""
    if isinstance(value, Table):
        if value.name in _of_this_transaction:  # nothing is written before all copies are made
            return _of_this_transaction[value.name]
        table: Any
        table = _of_this_transaction[value.name] = copy.copy(value)
        table.items = copy.copy(value.items)
        for name, found in value.items.items():
            table.items[name] = kept(found)
        return table
    if isinstance(value, Item):
        item: Any = copy.copy(value)
        item.attrs = type(value.attrs)()
        dict.update(item.attrs, value.attrs)  # its own way of adding measures all of them each time
        return item
    return copy.deepcopy(value)


if __name__ == "__main__":
    _moto.DynamoDBBackend.transact_write_items = transact
    _moto.copy = SimpleNamespace(deepcopy=kept, copy=copy.copy)
    MotoServer(int(sys.argv[1]), float(sys.argv[2])).serve()
