"""`tahan job`: all attempts of a job, letting the next one begin, cancelling."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from ops.exits import Exit
from shared.commit import Progress
from shared.job_record import Replayed, Status
from shared.outcome import Failure
from tests.operated import ME
from tests.ops.operations import FAILURE, ID, RECORD, VIEW, desk_with
from tests.world import START

if TYPE_CHECKING:
    from tests.ops.desk import Desk

SOON = START + timedelta(minutes=1)


def status_of(desk: Desk) -> Status:
    return desk.jobs.records[RECORD].status


def test_a_job_is_shown_with_every_spent_attempt_and_who_replayed_it() -> None:
    second = replace(FAILURE, at=SOON, error="TimeoutError: x")
    desk = desk_with(
        VIEW, status=Status.RETRYING, attempts=2, failures=(FAILURE, second), replays=1, replayed=Replayed(1, START, ME)
    )
    assert desk.run("job", "show", ID, "--json") == Exit.DONE
    assert [failure["error"] for failure in desk.json["failures"]] == ["Unavailable: 503", "TimeoutError: x"]
    assert (desk.json["replays"], desk.json["replayed_by"], desk.json["attempts"]) == (1, ME, 2)
    assert "order-17" not in desk.out
    assert desk.run("job", "show", ID, "--payload") == Exit.DONE
    assert "order-17" in desk.out
    assert "TimeoutError: x" in desk.out


def test_every_time_of_a_job_is_told_in_seconds() -> None:
    at = START + timedelta(microseconds=123456)
    failure = replace(FAILURE, at=at)
    desk = desk_with(
        VIEW,
        status=Status.RETRYING,
        attempts=1,
        failures=(failure,),
        first_failure=failure,
        last_failure=failure,
        not_before=at,
        run_at=at,
        replayed=Replayed(1, at, ME),
        progress=Progress(1, at, 2),
    )
    for words in (("job", "show"), ("operation", "show")):
        assert desk.run(*words, ID, "--json") == Exit.DONE
        assert "123456" not in desk.out
        assert desk.json["last_failure"] == "2026-01-01T00:00:00+00:00 transient (payment-provider): Unavailable: 503"


def test_a_payload_of_an_unknown_type_shows_no_value() -> None:
    desk = desk_with(VIEW, names={**VIEW.names, "job_type": "gone"})
    assert desk.run("job", "show", ID, "--payload", "--json") == Exit.DONE
    assert desk.json["payload"] == '{"order_id":"***"}'


def test_a_dead_attempts_job_is_given_back_and_told_to_the_audit() -> None:
    desk = desk_with(VIEW, status=Status.RUNNING, attempts=1, token="t", claim_until=START - timedelta(seconds=1))
    assert desk.run("job", "release", ID, "--why", "killed", "--yes", "--json") == Exit.DONE
    view = desk.jobs.records[RECORD]
    assert (view.status, view.not_before) == (Status.RETRYING, START)
    assert view.token not in {"t", None}
    assert (desk.json["status"], desk.audit[0]["what"], desk.audit[0]["ids"]) == ("retrying", "job release", [RECORD])


def test_a_job_that_may_be_running_is_given_back_only_by_force() -> None:
    desk = desk_with(VIEW, status=Status.RUNNING, attempts=1, token="t", claim_until=SOON)
    words = ("job", "release", ID, "--why", "stuck", "--yes")
    assert desk.run(*words) == Exit.REFUSED
    assert (status_of(desk), desk.audit) == (Status.RUNNING, [])
    assert desk.run(*words, "--force") == Exit.DONE
    assert status_of(desk) is Status.RETRYING


def test_a_job_that_waits_runs_now() -> None:
    desk = desk_with(VIEW, status=Status.RETRYING, attempts=1, token="t", not_before=SOON)
    assert desk.run("job", "release", ID, "--why", "now", "--yes") == Exit.DONE
    assert desk.jobs.records[RECORD].not_before == START


@pytest.mark.parametrize("status", [Status.ACCEPTED, Status.COMPLETED, Status.DEAD_LETTERED])
def test_what_nobody_holds_is_not_given_back(status: Status) -> None:
    desk = desk_with(VIEW, status=status)
    assert desk.run("job", "release", ID, "--why", "x", "--yes") == Exit.REFUSED
    assert desk.audit == []


@pytest.mark.parametrize(
    ("status", "words", "ends"),
    [
        (Status.ACCEPTED, (), Exit.DONE),
        (Status.RETRYING, (), Exit.REFUSED),
        (Status.RETRYING, ("--although-begun",), Exit.DONE),
        (Status.RUNNING, ("--although-begun",), Exit.DONE),
        (Status.DEAD_LETTERED, (), Exit.REFUSED),
        (Status.DEAD_LETTERED, ("--although-begun",), Exit.DONE),
        (Status.COMPLETED, ("--although-begun",), Exit.REFUSED),
        (Status.CANCELLED, (), Exit.DONE),
    ],
)
def test_a_job_is_cancelled_if_it_has_not_begun_or_people_say_although_it_has(
    status: Status, words: tuple[str, ...], ends: Exit
) -> None:
    desk = desk_with(VIEW, status=status)
    assert desk.run("job", "cancel", ID, "--why", "x", "--yes", *words) == ends
    assert status_of(desk) is (Status.CANCELLED if ends is Exit.DONE else status)


def test_people_are_asked_and_a_dry_run_changes_nothing() -> None:
    desk = desk_with(VIEW)
    desk.stdin = "n\n"
    assert desk.run("job", "cancel", ID, "--why", "x") == Exit.REFUSED
    assert desk.run("job", "cancel", ID, "--why", "x", "--dry-run") == Exit.DONE
    assert (status_of(desk), desk.audit) == (Status.ACCEPTED, [])


def test_a_job_that_changed_meanwhile_is_left_as_it_is() -> None:
    desk = desk_with(VIEW)

    def begun(look: int) -> None:
        del look

    desk.jobs.on_look = begun
    original = desk.write

    def write(line: str) -> None:
        original(line)
        desk.jobs.records[RECORD] = replace(VIEW, status=Status.RUNNING, attempts=1)

    desk.write = write  # type: ignore[method-assign]
    assert desk.run("job", "cancel", ID, "--why", "x", "--yes") == Exit.LEFT
    assert status_of(desk) is Status.RUNNING
    assert desk.audit[-1]["outcome"] == "broke off"


@pytest.mark.parametrize("command", ["show", "release", "cancel"])
def test_a_job_that_is_not_there_has_a_status_of_its_own(command: str) -> None:
    words = () if command == "show" else ("--why", "x", "--yes")
    assert desk_with(None).run("job", command, ID, *words) == Exit.ABSENT
    assert desk_with(None).run("job", command, "op_x", *words) == Exit.REFUSED


def test_failures_of_one_dependency_name_it() -> None:
    desk = desk_with(VIEW, status=Status.RETRYING, failures=(Failure(START, "transient", "x", "s", "shop"),))
    assert desk.run("job", "show", ID) == Exit.DONE
    assert "shop" in desk.out


def test_a_replayed_job_that_has_begun_before_is_cancelled_only_if_people_say_although_it_has() -> None:
    desk = desk_with(VIEW, status=Status.ACCEPTED, begun_at=START)
    assert desk.run("job", "cancel", ID, "--why", "x", "--yes") == Exit.REFUSED
    assert status_of(desk) is Status.ACCEPTED
    assert desk.run("job", "cancel", ID, "--why", "x", "--yes", "--although-begun") == Exit.DONE


def test_a_job_whose_outcome_nobody_knows_is_ended_by_people_who_say_so() -> None:
    """No job reconciles it; and where it is a part, its parent waits for it."""
    desk = desk_with(VIEW, status=Status.UNKNOWN, attempts=1)
    assert desk.run("job", "cancel", ID, "--why", "x", "--yes") == Exit.REFUSED
    assert desk.run("job", "cancel", ID, "--why", "x", "--yes", "--although-begun") == Exit.DONE
    assert desk.jobs.records[RECORD].status is Status.CANCELLED


def test_a_job_that_is_cancelled_already_is_told_to_programs_too() -> None:
    desk = desk_with(VIEW, status=Status.CANCELLED)
    assert desk.run("job", "cancel", ID, "--why", "x", "--yes", "--json") == Exit.DONE
    assert (desk.json["status"], desk.json["changed"], desk.audit) == ("cancelled", False, [])
