"""`tahan operation list`: an owner's jobs, newest first, page by page; nobody else's."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from ops.exits import Exit
from shared.job_record import JobView, Status, operation_id, record_id
from tests.ops.desk import Desk
from tests.world import START

ANN, BOB = "jwt:https://login.example.com:ann", "jwt:https://login.example.com:bob"
LIST = ("operation", "list", "--owner")


def desk_with(*owners: str) -> Desk:
    desk = Desk()
    for place, owner in enumerate(owners):
        record = record_id(owner, "note", str(place))
        names = {
            "owner": owner,
            "job_type": "note",
            "idempotency_key": str(place),
            "operation_id": operation_id(record),
        }
        desk.jobs.records[record] = JobView(record, Status.COMPLETED, 1, "1:a", result='{"private": 1}', names=names)
        desk.jobs.accepted_at[record] = START + timedelta(minutes=place)
    return desk


def id_of(owner: str, place: int) -> str:
    return operation_id(record_id(owner, "note", str(place)))


def test_an_owners_jobs_are_listed_newest_first_page_by_page() -> None:
    desk = desk_with(ANN, BOB, ANN, ANN)
    assert desk.run(*LIST, ANN, "--limit", "2", "--json") == Exit.DONE
    first = desk.json
    assert [row["operation_id"] for row in first["operations"]] == [id_of(ANN, 3), id_of(ANN, 2)]
    assert desk.run(*LIST, ANN, "--limit", "2", "--next", first["next"], "--json") == Exit.DONE
    assert [row["operation_id"] for row in desk.json["operations"]] == [id_of(ANN, 0)]
    assert desk.json["next"] is None


def test_people_get_a_line_for_each_and_how_to_go_on() -> None:
    desk = desk_with(ANN, ANN)
    assert desk.run(*LIST, ANN, "--limit", "1") == Exit.DONE
    assert desk.out.split() == ["2026-01-01T00:01:00+00:00", "done", "note", id_of(ANN, 1)]
    assert desk.err.startswith("More: --next ")
    assert desk.run(*LIST, "nobody") == Exit.DONE
    assert (desk.out, desk.err) == ("", "There are none.\n")


def test_results_are_in_no_list() -> None:
    desk = desk_with(ANN)
    desk.run(*LIST, ANN, "--json")
    assert "private" not in desk.out


def test_a_place_that_is_none_is_refused() -> None:
    assert desk_with(ANN).run(*LIST, ANN, "--next", "abc") == Exit.REFUSED


def test_a_place_of_another_owners_list_is_refused() -> None:
    desk = desk_with(ANN, ANN, BOB)
    desk.run(*LIST, ANN, "--limit", "1", "--json")
    assert desk.run(*LIST, BOB, "--next", desk.json["next"]) == Exit.REFUSED


def test_i7_what_has_expired_is_in_no_list() -> None:
    desk = desk_with(ANN)
    (record,) = desk.jobs.records
    desk.jobs.records[record] = replace(desk.jobs.records[record], expires=START)
    assert desk.run(*LIST, ANN, "--json") == Exit.DONE
    assert desk.json["operations"] == []
