"""`tahan operation show`: how a job stands, until it is over, with a status for scripts; what is personal only if asked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ops.exits import Exit
from ops.jobs.job_records import Seen
from ops.jobs.watching import LONGEST_PAUSE, PAUSE, share_of
from shared.commit import Progress
from shared.errors import Unavailable
from shared.job_record import Status
from shared.parts import Split, Tally
from tests.ops.operations import FAILURE, ID, RECORD, VIEW, desk_with
from tests.world import START

BAR_SIGN = "━"
SHOW = ("operation", "show", ID)

if TYPE_CHECKING:
    from tests.ops.desk import Desk


def changing(desk: Desk, **at: Any) -> Desk:
    """The job changes when it is looked at for the n-th time."""

    def on_look(look: int) -> None:
        if f"look_{look}" in at:
            desk.jobs.records[RECORD] = replace(desk.jobs.records[RECORD], **at[f"look_{look}"])

    desk.jobs.on_look = on_look
    return desk


@pytest.mark.parametrize(
    ("status", "looked", "watched"),
    [
        (Status.ACCEPTED, Exit.DONE, Exit.UNDER_WAY),
        (Status.RUNNING, Exit.DONE, Exit.UNDER_WAY),
        (Status.RETRYING, Exit.DONE, Exit.UNDER_WAY),
        (Status.COMPLETED, Exit.DONE, Exit.DONE),
        (Status.FAILED, Exit.ENDED_BADLY, Exit.ENDED_BADLY),
        (Status.CANCELLED, Exit.ENDED_BADLY, Exit.ENDED_BADLY),
        (Status.DEAD_LETTERED, Exit.ENDED_BADLY, Exit.ENDED_BADLY),
        (Status.UNKNOWN, Exit.UNKNOWN, Exit.UNKNOWN),
    ],
)
def test_each_status_has_an_exit_status(status: Status, looked: Exit, watched: Exit) -> None:
    desk = desk_with(VIEW, status=status)
    assert desk.run(*SHOW) == looked
    assert desk.run(*SHOW, "--watch", "--timeout", "10") == watched


def test_an_operation_is_shown_with_its_times_attempts_and_error_and_nothing_personal() -> None:
    waits = START + timedelta(minutes=1)
    desk = desk_with(VIEW, status=Status.RETRYING, attempts=2, not_before=waits, last_failure=FAILURE, result='"r"')

    assert desk.run(*SHOW, "--json") == Exit.DONE

    shown = desk.json
    assert (shown["operation_id"], shown["status"], shown["attempts"]) == (ID, "retrying", 2)
    assert (shown["accepted_at"], shown["not_before"]) == (START.isoformat(), waits.isoformat())
    assert shown["last_failure"] == f"{START.isoformat()} transient (payment-provider): Unavailable: 503"
    assert {"payload", "idempotency_key", "result"}.isdisjoint(shown)
    assert "order-17" not in desk.out + desk.err


def test_payload_key_and_result_are_shown_to_whoever_asks_for_them() -> None:
    desk = desk_with(VIEW)
    assert desk.run(*SHOW, "--payload", "--json") == Exit.DONE
    assert (desk.json["payload"], desk.json["idempotency_key"]) == (VIEW.payload, "order-17/capture")


def test_the_records_own_key_will_do() -> None:
    assert desk_with(VIEW).run("operation", "show", RECORD) == Exit.DONE


@pytest.mark.parametrize("name", ["", "op_", "op_" + "g" * 64, "op_" + "a" * 63, RECORD + "0", RECORD.upper()])
def test_what_can_be_no_operation_is_refused(name: str) -> None:
    desk = desk_with(VIEW)
    assert desk.run("operation", "show", name) == Exit.REFUSED
    assert desk.jobs.looks == 0


def test_an_operation_that_is_not_there_has_a_status_of_its_own_and_the_reasons_there_can_be() -> None:
    desk = desk_with(None)
    assert desk.run(*SHOW) == Exit.ABSENT
    assert "no worker has begun it yet" in desk.err
    assert desk.clock.slept == []
    expired = desk_with(VIEW, status=Status.COMPLETED, expires=START)
    assert expired.run(*SHOW) == Exit.ABSENT


def test_watching_ends_with_the_job_and_tells_each_change_once() -> None:
    desk = changing(
        desk_with(VIEW),
        look_3={"status": Status.RUNNING, "attempts": 1},
        look_5={"status": Status.COMPLETED, "result": "{}"},
    )

    assert desk.run(*SHOW, "--watch", "--json") == Exit.DONE

    assert desk.json["status"] == "done"
    assert desk.err.splitlines() == ["capture-payment: pending, attempts 0", "capture-payment: running, attempts 1"]
    assert desk.clock.slept == [PAUSE.total_seconds()] * 4


def test_r5_1_the_progress_of_a_long_job_is_told_while_it_is_watched_and_shown() -> None:
    far = Progress(1200, START, 20_000, "rows")
    desk = changing(
        desk_with(VIEW, status=Status.RUNNING, attempts=1, progress=Progress(0, START)),
        look_2={"progress": far, "checkpoints": 3},
        look_4={"status": Status.COMPLETED},
    )
    assert desk.run(*SHOW, "--watch", "--json") == Exit.DONE
    assert desk.err.splitlines() == [
        "capture-payment: running, attempts 1, 0",
        "capture-payment: running, attempts 1, 1,200 of 20,000 rows",
    ]
    assert (desk.json["progress"], desk.json["progress_at"]) == ("1,200 of 20,000 rows", START.isoformat())
    assert desk.json["checkpoints"] == 3


def test_a_terminal_gets_a_bar_where_the_whole_is_known() -> None:
    desk = changing(
        desk_with(VIEW, status=Status.RUNNING, progress=Progress(1, START)),
        look_2={"progress": Progress(10, START, 20)},
        look_4={"status": Status.COMPLETED},
    )
    desk.terminal = True
    assert desk.run(*SHOW, "--watch") == Exit.DONE
    before, _, after = desk.err.partition("10 of 20")
    assert BAR_SIGN not in before
    assert after.count(BAR_SIGN) >= 20


@pytest.mark.parametrize(
    ("progress", "share"),
    [
        (None, None),
        (Progress(1, START), None),
        (Progress(1, START, 0), None),
        (Progress(1, START, 4), 0.25),
        (Progress(9, START, 4), 1.0),
    ],
)
def test_no_bar_is_longer_than_the_whole(progress: Progress | None, share: float | None) -> None:
    assert share_of(Seen(replace(VIEW, progress=progress))) == share
    assert share_of(None) is None


def test_a_job_whose_attempt_let_its_claim_run_out_is_told_as_retried() -> None:
    desk = desk_with(VIEW, status=Status.RUNNING, claim_until=START - timedelta(seconds=1))
    assert desk.run(*SHOW, "--json") == Exit.DONE
    assert (desk.json["status"], desk.json["claimed_until"]) == ("retrying", None)


def test_an_unknown_outcome_is_watched_until_its_reconciling_job_has_settled_it() -> None:
    desk = changing(desk_with(VIEW, status=Status.UNKNOWN), look_2={"status": Status.COMPLETED})
    assert desk.run(*SHOW, "--watch") == Exit.DONE


def test_a_job_that_waits_for_its_time_is_asked_less_often() -> None:
    desk = changing(
        desk_with(VIEW, not_before=START + timedelta(seconds=40)),
        look_4={"status": Status.COMPLETED, "not_before": None},
    )
    assert desk.run(*SHOW, "--watch") == Exit.DONE
    assert desk.clock.slept == [LONGEST_PAUSE.total_seconds(), 10.0, PAUSE.total_seconds()]


def test_a_job_whose_message_waits_on_the_queue_is_waited_for() -> None:
    desk = desk_with(None)

    def on_look(look: int) -> None:
        if look == 4:
            desk.jobs.records[RECORD] = replace(VIEW, status=Status.COMPLETED)

    desk.jobs.on_look = on_look
    assert desk.run(*SHOW, "--watch") == Exit.DONE
    assert len(desk.err.splitlines()) == 1
    assert desk.run("operation", "show", "a" * 64, "--watch", "--timeout", "5") == Exit.ABSENT


def test_the_time_to_watch_ends_and_the_operation_may_go_on() -> None:
    desk = desk_with(VIEW, status=Status.RUNNING)
    assert desk.run(*SHOW, "--watch", "--timeout", "5") == Exit.UNDER_WAY
    assert sum(desk.clock.slept) == 5


def test_a_store_that_does_not_answer_for_a_moment_ends_no_watch() -> None:
    desk = desk_with(VIEW)

    def on_look(look: int) -> None:
        if look == 2:
            message = "dynamodb gave no answer."
            raise Unavailable(message, dependency="dynamodb")
        if look == 3:
            desk.jobs.records[RECORD] = replace(VIEW, status=Status.COMPLETED)

    desk.jobs.on_look = on_look
    assert desk.run(*SHOW, "--watch") == Exit.DONE
    assert "not seen: dynamodb gave no answer." in desk.err


def test_ctrl_c_ends_a_watch_with_the_status_that_shells_know() -> None:
    desk = desk_with(VIEW)

    def interrupted(look: int) -> None:
        if look == 2:
            raise KeyboardInterrupt

    desk.jobs.on_look = interrupted
    assert desk.run(*SHOW, "--watch") == Exit.INTERRUPTED


@pytest.mark.parametrize(
    ("tally", "told"),
    [
        (None, "0 of 5 ended"),
        (Tally(5, succeeded=2, dead_lettered=1), "3 of 5 ended: 2 succeeded, 1 dead-lettered"),
    ],
)
def test_a_job_that_is_split_tells_what_became_of_its_parts(tally: Tally | None, told: str) -> None:
    desk = desk_with(VIEW, status=Status.WAITING, split=Split("s", 1, 5), tally=tally)
    assert desk.run(*SHOW) == Exit.DONE
    assert told in desk.out
    assert desk_with(VIEW).run(*SHOW, "--json") == Exit.DONE
