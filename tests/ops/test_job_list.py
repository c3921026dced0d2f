"""`tahan job list`: looks through the jobs of every owner, a part at a time."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from ops.exits import Exit
from ops.jobs.job_records import DynamoDBJobs
from shared.backends.aws import client
from shared.clock import SystemClock
from tests.aws import Database
from tests.ops.desk import Desk
from tests.ops.letters import bury, operation_of

if TYPE_CHECKING:
    from shared.job_record import JobView


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], {"k1", "k2"}),
        (["--key", "k2"], {"k2"}),
        (["--state", "dead-lettered"], {"k1", "k2"}),
        (["--state", "done"], set()),
        (["--resource", "order/secret-k1"], {"k1"}),
        (["--owner", "system", "--job-type", "capture-payment"], {"k1", "k2"}),
        (["--owner", "jwt:a:b"], set()),
    ],
)
def test_jobs_are_found_by_what_people_know_of_them(words: list[str], found: set[str]) -> None:
    desk = Desk()
    bury(desk, "k1")
    bury(desk, "k2")
    assert desk.run("job", "list", "--json", *words) == Exit.DONE
    assert {job["operation_id"] for job in desk.json["jobs"]} == {operation_of(key) for key in found}
    assert "secret" not in desk.out


def test_a_look_goes_on_where_the_last_one_ended() -> None:
    desk = Desk()
    for number in range(5):
        bury(desk, f"k{number}")
    seen: list[str] = []
    words: list[str] = []
    while True:
        assert desk.run("job", "list", "--json", "--limit", "2", *words) == Exit.DONE
        seen += [job["operation_id"] for job in desk.json["jobs"]]
        if desk.json["next"] is None:
            break
        words = ["--next", desk.json["next"]]
    assert sorted(seen) == sorted(operation_of(f"k{number}") for number in range(5))
    assert desk.run("job", "list", "--next", "no place") == Exit.REFUSED


def test_the_table_is_looked_through_in_bounded_parts_and_other_things_in_it_are_left_out(aws_endpoint: str) -> None:
    database = Database.create()
    dynamodb = client("dynamodb")
    for number in range(7):
        item = {"id": {"S": f"{number:064x}"}, "status": {"S": "accepted"}, "owner": {"S": "system"}}
        dynamodb.put_item(TableName=database.jobs_table, Item=item)
    dynamodb.put_item(TableName=database.jobs_table, Item={"id": {"S": f"brake/{uuid.uuid4().hex}"}})
    jobs = DynamoDBJobs(dynamodb, database.jobs_table, SystemClock())
    found: list[JobView] = []
    place = None
    for _ in range(10):
        some = jobs.some(lambda view: not view.record.endswith("3"), 2, place)
        assert len(some.jobs) <= 2
        found += [seen.view for seen in some.jobs]
        place = some.next
        if place is None:
            break
    assert sorted(int(view.record, 16) for view in found) == [0, 1, 2, 4, 5, 6]
