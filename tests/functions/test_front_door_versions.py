"""Over HTTP: a payload of an earlier version, from clients that were shipped before there was a later one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from functions import front_door
from shared.wire.parsing import read_message
from shared.worker import Worker
from tests.functions.house import House
from tests.unit.versions import third

if TYPE_CHECKING:
    from tests.door import Client

KEY = "one-intent"


@pytest.fixture
def http(monkeypatch: pytest.MonkeyPatch) -> Client:
    """A door to a job whose payload is at version 3, and reads the two before."""
    worker = Worker("notes", jobs=(third(open_to_clients=True),))
    monkeypatch.setattr(front_door, "OPEN_JOBS", worker.jobs)
    monkeypatch.setattr(front_door, "OPEN", {"note": "notes"})
    house = House()
    house.http.stack = house
    return house.http


def test_r2_7_old_and_new_clients_are_told_of_one_operation(http: Client) -> None:
    status, first, _ = http.post({"thing": "a"}, job_type="note", key=KEY)
    assert status == 202
    for query, payload in (("version=2", {"name": "a"}), ("version=3", {"name": "a", "lines": []})):
        status, again, headers = http.post(payload, job_type="note", key=KEY, query=query)
        assert (status, again, headers["Idempotent-Replayed"]) == (202, first, "true")
    (posting,) = http.stack.database.outbox.values()
    assert read_message(posting.body).version == 1


@pytest.mark.parametrize(
    ("query", "payload", "code"),
    [
        ("version=4", {"name": "a"}, "schema-unsupported"),
        ("version=1", {"name": "a"}, "upgrade-failed"),
        ("version=2", {"name": 7}, "invalid-payload"),
        ("version=3", {"thing": "a"}, "invalid-payload"),
        ("", {"name": "a", "lines": []}, "upgrade-failed"),
    ],
)
def test_a_payload_that_is_not_of_its_version_is_refused_and_nothing_is_written(
    http: Client, query: str, payload: object, code: str
) -> None:
    status, body, _ = http.post(payload, job_type="note", key=KEY, query=query)
    assert (status, body["code"]) == (422, code)
    assert http.stack.database.records == {}
