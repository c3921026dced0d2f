"""The outside inventory system's stand-in over real HTTP: what it promises, and how it misbehaves."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from local.outside.inventory_system import InventorySystem
from tests.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def system() -> Iterator[InventorySystem]:
    with serving(InventorySystem(0, quiet=True)) as server:
        yield server


def get(system: InventorySystem, path: str, timeout: float = 5) -> tuple[int, dict[str, Any], dict[str, str]]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{system.server_port}{path}", timeout=timeout) as answer:
            return answer.status, json.loads(answer.read()), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read()), dict(error.headers)


def pages(system: InventorySystem, user: str) -> list[dict[str, Any]]:
    found = [get(system, f"/v1/inventories/{user}?limit=500")[1]]
    while found[-1]["next"] is not None:
        found.append(get(system, f"/v1/inventories/{user}?limit=500&cursor={found[-1]['next']}")[1])
    return found


def test_pages_give_every_line_once_and_name_one_snapshot(system: InventorySystem) -> None:
    found = pages(system, "large-1")
    assert [len(page["lines"]) for page in found] == [500] * 5
    assert len({line["sku"] for page in found for line in page["lines"]}) == 2500
    assert len({page["snapshot"] for page in found}) == 1


def test_an_inventory_changes_when_it_is_told(system: InventorySystem) -> None:
    (before,) = pages(system, "a")
    assert pages(system, "a") == [before]
    system.inventories.change("a")
    (after,) = pages(system, "a")
    assert before["snapshot"] != after["snapshot"]
    assert before["lines"] != after["lines"]


def test_an_inventory_changes_between_two_pages_without_a_word(system: InventorySystem) -> None:
    assert len({page["snapshot"] for page in pages(system, "changing-once")}) == 2
    assert len({page["snapshot"] for page in pages(system, "changing-once")}) == 1
    assert len({page["snapshot"] for page in pages(system, "changing-always")}) == 3


def test_a_cursor_of_an_old_snapshot_may_be_refused(system: InventorySystem) -> None:
    first = get(system, "/v1/inventories/forgetting-1")[1]
    assert get(system, f"/v1/inventories/forgetting-1?cursor={first['next']}")[0] == 410
    assert len(pages(system, "forgetting-1")) == 3


def test_requests_are_refused_as_the_name_says_and_then_answered(system: InventorySystem) -> None:
    statuses = {user: [get(system, f"/v1/inventories/{user}1")[0] for _ in range(3)] for user in ("503x2-", "500-")}
    assert statuses == {"503x2-": [503, 503, 200], "500-": [500, 200, 200]}
    limited = get(system, "/v1/inventories/429-1")
    assert (limited[0], limited[2]["Retry-After"]) == (429, "3")
    assert get(system, "/v1/inventories/absent-1")[:2] == (404, {"code": "unknown_user"})
    assert get(system, "/ledger")[1]["requests_by_user"]["503x2-1"] == 3


def test_an_answer_may_never_come(system: InventorySystem) -> None:
    with pytest.raises(TimeoutError):
        get(system, "/v1/inventories/lost-1", timeout=0.3)
    assert get(system, "/v1/inventories/lost-1")[0] == 200
