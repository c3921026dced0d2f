"""`tahan dlq`: what it shows, what it asks, what it tells the audit, how it ends."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from functions.payments import capture_payment
from functions.registry import JOB_TYPES
from ops.exits import Exit
from shared.dead_letter import dossier
from shared.desk.dead_letter_queue import Redrive
from shared.failpoints import Failpoint, armed
from shared.job_record import Status
from shared.outcome import DeadLettered, Failure
from shared.wire.parsing import read_message
from tests.dying import Killed, dying
from tests.operated import ME
from tests.ops.desk import Desk
from tests.ops.letters import (
    QUEUE,
    TRANSIENT,
    UNKNOWN_ORDER,
    body_of,
    bury,
    bury_raw,
    dead,
    ends_well,
    operation_of,
    record_of,
    view,
    visible,
)
from tests.world import START, World

if TYPE_CHECKING:
    from pathlib import Path

NEW = json.dumps({"order_id": "order-9", "payment_intent_id": "pi_9"})


def desk_with(*keys: str) -> Desk:
    desk = Desk()
    for key in keys:
        bury(desk, key)
    return desk


def test_letters_are_listed_with_what_they_died_of_and_nothing_personal() -> None:
    desk = desk_with("k1", "k2")
    bury(desk, "k3", UNKNOWN_ORDER)
    bury_raw(desk, "no json")
    assert desk.run("dlq", "list") == Exit.DONE
    assert "unknown-order" in desk.out
    assert "(unreadable)" in desk.out
    assert "secret" not in desk.out + desk.err
    assert desk.run("dlq", "list", "--json", "--reason", "transient") == Exit.DONE
    first, second = desk.json["letters"]
    assert (first["operation_id"], second["operation_id"]) == (operation_of("k1"), operation_of("k2"))
    assert (first["came_by"], first["attempts"], first["deaths"]) == ("failed", 1, 1)
    assert visible(desk) == 4
    assert desk.audit == []


def test_an_empty_desk_says_so() -> None:
    desk = Desk()
    assert desk.run("dlq", "list") == Exit.DONE
    assert "There are none" in desk.err


def test_letters_are_grouped_by_what_they_died_of_the_largest_group_first() -> None:
    desk = desk_with("k1", "k2", "k3")
    bury(desk, "k4", UNKNOWN_ORDER)
    assert desk.run("dlq", "groups", "--json") == Exit.DONE
    assert [(g["letters"], g["reason"], g["signature"]) for g in desk.json["groups"]] == [
        (3, "transient", "aaaaaaaaaaaa"),
        (1, "unknown-order", "bbbbbbbbbbbb"),
    ]
    assert desk.json["groups"][0]["dependency"] == "payment-provider"
    assert desk.run("dlq", "groups") == Exit.DONE
    assert "aaaaaaaaaaaa" in desk.out


def test_a_dossier_has_reason_attempts_times_resource_trace_and_operation() -> None:
    desk = desk_with("k1")
    assert desk.run("dlq", "show", operation_of("k1"), "--json") == Exit.DONE
    shown = desk.json
    assert (shown["reason"], shown["dependency"], shown["job_stands"]) == (
        "transient",
        "payment-provider",
        "dead-lettered",
    )
    assert shown["came_by"].startswith("failed: ")
    assert [failure["error"] for failure in shown["failures"]] == ["Unavailable: 503"]
    assert len(shown["resource"]) == 16
    assert "secret" not in desk.out
    assert desk.run("dlq", "show", operation_of("k1"), "--payload") == Exit.DONE
    assert "secret-k1" in desk.out


def test_a_letter_that_is_not_there_or_not_clearly_named_is_told() -> None:
    desk = desk_with("k1", "k2")
    assert desk.run("dlq", "show", "nothing") == Exit.ABSENT
    assert desk.run("dlq", "show", "m") == Exit.REFUSED
    assert "may mean any of these" in desk.err
    assert desk.run("dlq", "list", "--worker", "nobody") == Exit.REFUSED
    assert "It runs payments" in desk.err


def test_a_replay_is_told_before_and_after_and_summed_up() -> None:
    desk = desk_with("k1", "k2")
    ends_well(desk)
    assert desk.run("dlq", "replay", "--group", "aaaaaaaaaaaa", "--why", "provider is back", "--json") == Exit.DONE
    assert (desk.json["replayed"], desk.json["ended"], desk.json["stopped"]) == (2, {"completed": 2}, None)
    begins, done = desk.audit
    assert (begins["outcome"], begins["who"], begins["what"], begins["why"], begins["stack"]) == (
        "begins",
        ME,
        "dlq replay",
        "provider is back",
        "tahan-dev",
    )
    assert begins["which"] == "group aaaaaaaaaaaa"
    assert (done["outcome"], done["counts"]["replayed"], done["change"]) == ("done", 2, begins["change"])
    assert dead(desk) == []


def test_nothing_is_changed_where_the_audit_cannot_be_written(tmp_path: Path) -> None:
    desk = desk_with("k1")
    desk.audit_is_gone = True
    before = view(desk, "k1")
    for words in (
        ("dlq", "replay", "--all", "--why", "x"),
        ("dlq", "discard", "--all", "--why", "x", "--archive", str(tmp_path / "a"), "--yes"),
        ("dlq", "edit", operation_of("k1"), "--payload", NEW, "--why", "x"),
        ("job", "cancel", operation_of("k1"), "--although-begun", "--why", "x", "--yes"),
    ):
        assert desk.run(*words) == Exit.NOT_DONE, words
        assert "Nothing was changed" in desk.err
    assert (view(desk, "k1"), dead(desk), desk.queues[QUEUE].messages) == (before, ["k1"], {})


def test_a_replay_that_stops_by_itself_has_a_status_of_its_own_and_leaves_the_rest() -> None:
    desk = desk_with(*(f"k{number}" for number in range(9)))

    def die_again(seconds: float) -> None:
        del seconds
        for record, seen in desk.jobs.records.items():
            if seen.status is Status.ACCEPTED:
                again = replace(seen, status=Status.DEAD_LETTERED, death=2, last_failure=TRANSIENT)
                desk.jobs.records[record] = again

    desk.clock.sleep = die_again  # type: ignore[method-assign]
    assert desk.run("dlq", "replay", "--all", "--why", "x", "--canary", "2") == Exit.STOPPED
    assert "2 aaaaaaaaaaaa" in desk.out
    assert "The rest is untouched" in desk.err
    assert len(dead(desk)) == 7


def test_a_dry_run_says_what_would_be_done_and_does_nothing() -> None:
    desk = desk_with("k1", "k2")
    desk.jobs.records[record_of("k2")] = replace(view(desk, "k2"), status=Status.CANCELLED)
    assert desk.run("dlq", "replay", "--all", "--dry-run", "--json") == Exit.DONE
    assert desk.json["counts"] == {"replay": 1, "its job has ended": 1}
    assert (desk.audit, len(dead(desk)), desk.queues[QUEUE].messages) == ([], 2, {})


def test_letters_that_are_left_are_told_with_what_to_do() -> None:
    desk = desk_with("k1")
    desk.jobs.records[record_of("k1")] = replace(view(desk, "k1"), status=Status.CANCELLED)
    assert desk.run("dlq", "replay", "--all", "--why", "x") == Exit.LEFT
    assert "its job has ended: discard them" in desk.err


def test_dlq_05_what_died_too_often_is_refused_with_its_history_and_who_insists_is_told() -> None:
    desk = Desk()
    bury(desk, "k1", death=4)
    assert desk.run("dlq", "replay", operation_of("k1"), "--why", "x") == Exit.REFUSED
    assert "died 4 times" in desk.err
    assert "Unavailable: 503" in desk.out
    assert desk.run("dlq", "replay", operation_of("k1"), "--force") == Exit.REFUSED
    ends_well(desk)
    assert desk.run("dlq", "replay", operation_of("k1"), "--force", "--why", "mended") == Exit.DONE
    assert (desk.audit[-1]["why"], "insisted" in desk.audit[-1]["which"]) == ("mended", True)


def test_dlq_06_beside_a_redrive_of_aws_nothing_is_begun_and_it_can_be_stopped() -> None:
    desk = desk_with("k1")
    desk.redrive = Redrive("h", 3, 50)
    assert desk.run("dlq", "replay", "--all", "--why", "x") == Exit.REFUSED
    assert "already running, moved 3 of 50" in desk.err
    assert desk.audit == []
    ends_well(desk)
    assert desk.run("dlq", "replay", "--all", "--why", "x", "--cancel-aws-redrive") == Exit.DONE


@pytest.mark.parametrize(
    "words",
    [
        ("dlq", "replay"),
        ("dlq", "discard", "--why", "x", "--archive", "/nowhere", "--yes"),
        ("dlq", "replay", "--all", "--why", "x", "--rate", "0.01"),
        ("dlq", "replay", "--all", "--why", "x", "--canary", "-1"),
    ],
    ids=" ".join,
)
def test_what_nobody_has_named_is_not_touched(words: tuple[str, ...]) -> None:
    desk = desk_with("k1")
    assert desk.run(*words) == Exit.REFUSED
    assert desk.audit == []


def test_dlq_09_two_of_five_are_discarded_while_two_more_arrive_and_the_archive_holds_them(tmp_path: Path) -> None:
    desk = desk_with("k1", "k2", "k3", "k4", "k5")
    file = tmp_path / "archive.jsonl"
    words = (
        "dlq",
        "discard",
        operation_of("k2"),
        operation_of("k4"),
        "--why",
        "asked",
        "--archive",
        str(file),
        "--yes",
    )

    def arrive(at: Failpoint) -> None:
        if at is Failpoint.ARCHIVED:
            bury(desk, "k6")
            bury(desk, "k7")

    with armed(arrive):
        assert desk.run(*words, "--json") == Exit.DONE
    assert desk.json["discarded"] == 2
    assert dead(desk) == ["k1", "k3", "k5", "k6", "k7"]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [json.loads(line["body"])["idempotency_key"] for line in lines] == ["k2", "k4"]
    assert "tahan.dead-letter" in lines[0]["attributes"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (view(desk, "k2").status, view(desk, "k2").result) == (Status.FAILED, '{"code":"discarded"}')
    assert desk.run(*words) == Exit.DONE  # run twice is no error
    assert visible(desk) == 5


def test_a_group_is_discarded_without_what_joined_it_since_it_was_agreed_to(tmp_path: Path) -> None:
    desk = desk_with("k1")

    def arrive(at: Failpoint) -> None:
        if at is Failpoint.ARCHIVED:
            bury(desk, "k2")

    file = str(tmp_path / "a")
    with armed(arrive):
        assert desk.run("dlq", "discard", "--all", "--why", "x", "--archive", file, "--yes") == Exit.DONE
    assert dead(desk) == ["k2"]


def test_people_are_asked_before_letters_are_thrown_away(tmp_path: Path) -> None:
    words = ("dlq", "discard", "--all", "--why", "x", "--archive", str(tmp_path / "a"))
    for answer, status in (("", Exit.REFUSED), ("n\n", Exit.REFUSED), ("y\n", Exit.DONE)):
        desk = desk_with("k1", "k2")
        desk.stdin = answer
        assert desk.run(*words) == status
        assert "Discard these 2 dead letters?" in desk.err
        assert len(dead(desk)) == (0 if status == Exit.DONE else 2)


def test_what_cannot_be_archived_is_not_thrown_away(tmp_path: Path) -> None:
    desk = desk_with("k1")
    file = str(tmp_path / "nowhere" / "a")
    assert desk.run("dlq", "discard", "--all", "--why", "x", "--archive", file, "--yes") == Exit.NOT_DONE
    assert (dead(desk), view(desk, "k1").status) == (["k1"], Status.DEAD_LETTERED)
    assert desk.audit[-1]["outcome"] == "broke off"


@pytest.mark.parametrize("point", [Failpoint.ARCHIVED, Failpoint.ENDED_BY_PEOPLE, Failpoint.LETTERS_DELETED])
def test_a_discard_that_dies_at_any_step_is_finished_by_the_same_command(tmp_path: Path, point: Failpoint) -> None:
    desk = desk_with("k1", "k2")
    file = tmp_path / "a"
    words = ("dlq", "discard", "--all", "--why", "x", "--archive", str(file), "--yes")
    with pytest.raises(Killed), dying(point):
        desk.run(*words)
    assert desk.run(*words) == Exit.DONE
    assert dead(desk) == []
    archived = {json.loads(line["body"])["idempotency_key"] for line in map(json.loads, file.read_text().splitlines())}
    assert archived == {"k1", "k2"}
    assert {view(desk, key).status for key in ("k1", "k2")} == {Status.FAILED}


def test_a_letter_that_nobody_can_read_is_shown_exported_replayed_and_discarded(tmp_path: Path) -> None:
    desk = Desk()
    bury_raw(desk, "no json")
    (letter,) = desk.queues[QUEUE].dead
    assert desk.run("dlq", "show", letter.id, "--payload", "--json") == Exit.DONE
    assert (desk.json["problem"], desk.json["payload"]) == ("malformed-json", None)
    file = tmp_path / "e.jsonl"
    assert desk.run("dlq", "export", str(file), "--all") == Exit.DONE
    assert json.loads(file.read_text())["body"] == "no json"
    assert dead(desk) == ["no json"]
    assert desk.run("dlq", "replay", "--all", "--why", "x", "--no-watch") == Exit.DONE
    assert [message.body for message in desk.queues[QUEUE].messages.values()] == ["no json"]
    bury_raw(desk, "no json")
    assert desk.run("dlq", "discard", "--all", "--why", "x", "--archive", str(file), "--yes") == Exit.DONE
    assert dead(desk) == []


def test_an_edit_makes_a_new_job_that_names_the_old_one_which_ends() -> None:
    desk = Desk()
    bury(desk, "k1", attributes={"tenant": {"stringValue": "t1", "dataType": "String"}})
    words = ("dlq", "edit", operation_of("k1"), "--payload", NEW, "--why", "wrong order")
    assert desk.run(*words, "--json") == Exit.DONE
    (kept,) = desk.queues[QUEUE].messages.values()
    message = read_message(kept.body)
    assert list(kept.attributes) == ["tenant"]
    assert (message.idempotency_key, message.job_id) == ("k1/edited-1", record_of("k1"))
    assert json.loads(message.payload) == json.loads(NEW)
    assert desk.json["changed"] == "order_id, payment_intent_id"
    assert desk.json["operation_id"] == operation_of("k1/edited-1")
    old = view(desk, "k1")
    assert old.status is Status.FAILED
    assert json.loads(old.result or "") == {"code": "edited", "detail": operation_of("k1/edited-1")}
    assert dead(desk) == []


@pytest.mark.parametrize("point", [Failpoint.EDITED_SENT, Failpoint.ENDED_BY_PEOPLE])
def test_an_edit_that_dies_at_any_step_is_the_same_job_when_it_is_said_again(point: Failpoint) -> None:
    desk = desk_with("k1")
    words = ("dlq", "edit", operation_of("k1"), "--payload", NEW, "--why", "wrong order")
    with pytest.raises(Killed), dying(point):
        desk.run(*words)
    assert dead(desk) == ["k1"]
    assert desk.run(*words) == Exit.DONE
    keys = {read_message(kept.body).idempotency_key for kept in desk.queues[QUEUE].messages.values()}
    assert (keys, dead(desk)) == ({"k1/edited-1"}, [])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--payload", '{"order_id": 7}'), "payment_intent_id: missing"),
        (("--payload", NEW, "--key", "k1"), "needs a key of its own"),
        (("--payload", NEW, "--key", " "), "missing-idempotency-key"),
        (("--payload", NEW, "--job-type", "nobody"), "has no job type"),
    ],
    ids=str,
)
def test_an_edit_that_the_consumer_would_refuse_is_refused_and_nothing_is_sent(
    words: tuple[str, ...], says: str
) -> None:
    desk = desk_with("k1")
    assert desk.run("dlq", "edit", operation_of("k1"), "--why", "x", *words) == Exit.REFUSED
    assert says in desk.err
    assert (desk.queues[QUEUE].messages, dead(desk), desk.audit) == ({}, ["k1"], [])


def test_an_edit_in_the_editor_begins_with_the_old_payload_and_a_dry_run_sends_nothing() -> None:
    desk = desk_with("k1")
    desk.typed = NEW
    assert desk.run("dlq", "edit", operation_of("k1"), "--why", "x", "--dry-run", "--json") == Exit.DONE
    assert json.loads(desk.edited[0])["order_id"] == "secret-k1"
    assert (desk.json["sent"], desk.json["payload"], dead(desk)) == (False, None, ["k1"])


def test_a_letter_whose_job_has_ended_is_not_edited() -> None:
    desk = desk_with("k1")
    desk.jobs.records[record_of("k1")] = replace(view(desk, "k1"), status=Status.COMPLETED)
    assert desk.run("dlq", "edit", operation_of("k1"), "--payload", NEW, "--why", "x") == Exit.REFUSED
    assert "its job has ended" in desk.err
    assert desk.queues[QUEUE].messages == {}


def test_what_the_audit_knows_only_the_beginning_of_is_told() -> None:
    desk = desk_with("k1")

    def gone(seconds: float) -> None:
        del seconds
        desk.audit_is_gone = True
        for record, seen in desk.jobs.records.items():
            desk.jobs.records[record] = replace(seen, status=Status.COMPLETED)

    desk.clock.sleep = gone  # type: ignore[method-assign]
    assert desk.run("dlq", "replay", "--all", "--why", "x") == Exit.DONE
    assert "the change's beginning and not its end" in desk.err


@pytest.mark.parametrize("time", ["inf", "nan", "1e30"])
def test_a_time_that_never_ends_is_refused(time: str) -> None:
    with pytest.raises(SystemExit) as ended:
        Desk().run("dlq", "replay", "--all", "--why", "x", "--watch-for", time)
    assert ended.value.code == Exit.REFUSED


@pytest.mark.parametrize("since", ["2026-01-01T00:00:00", "tomorrow"])
def test_a_time_without_its_zone_is_refused(since: str) -> None:
    with pytest.raises(SystemExit) as ended:
        Desk().run("dlq", "list", "--since", since)
    assert ended.value.code == Exit.REFUSED


def test_letters_are_chosen_by_the_time_at_which_they_died() -> None:
    desk = desk_with("k1")
    for word, count in (("--since", 0), ("--until", 1)):
        assert desk.run("dlq", "list", word, "2026-01-01T12:00:00+00:00", "--json") == Exit.DONE
        assert len(desk.json["letters"]) == count


def test_people_at_a_terminal_see_how_far_a_replay_is() -> None:
    desk = desk_with("k1", "k2", "k3")
    desk.terminal = True
    ends_well(desk)
    assert desk.run("dlq", "replay", "--all", "--why", "x") == Exit.DONE
    assert "3/3" in desk.err
    assert "ended 3" in desk.err


def test_a_replay_that_is_over_tells_by_its_status_what_its_jobs_came_to() -> None:
    desk = desk_with("k1")
    assert desk.run("dlq", "replay", "--all", "--why", "x", "--canary", "0", "--watch-for", "2") == Exit.UNDER_WAY
    desk = desk_with("k1")

    def die_again(seconds: float) -> None:
        del seconds
        for record, seen in desk.jobs.records.items():
            desk.jobs.records[record] = replace(seen, status=Status.DEAD_LETTERED, death=2)

    desk.clock.sleep = die_again  # type: ignore[method-assign]
    assert desk.run("dlq", "replay", "--all", "--why", "x", "--canary", "0") == Exit.ENDED_BADLY


def test_people_on_a_terminal_see_that_letters_are_being_read_and_programs_do_not() -> None:
    desk = desk_with("k1")
    desk.run("dlq", "list")
    assert "Reading" not in desk.err
    desk.terminal = True
    desk.run("dlq", "list")
    assert "Reading the dead letters of payments" in desk.err


def mark(desk: Desk, facts: object) -> None:
    """What stands in the last letter's attribute, whoever wrote it."""
    desk.queues[QUEUE].dead[-1].attributes["tahan.dead-letter"] = {
        "DataType": "String",
        "StringValue": json.dumps(facts),
    }


def test_i16_a_discarded_letter_under_another_jobs_key_does_not_end_that_job(tmp_path: Path) -> None:
    desk = desk_with("k1")
    delivery = World.of().delivery(json.dumps({**json.loads(body_of("k1")), "payload": {"order_id": 7}}))
    failure = Failure(START, "invalid-payload", "Malformed: order_id", "dddddddddddd")
    desk.queues[QUEUE].dead_letter(delivery, dossier(delivery, DeadLettered(failure, 1)))
    words = ("--why", "x", "--archive", str(tmp_path / "a"), "--yes")
    assert desk.run("dlq", "discard", "--reason", "invalid-payload", *words) == Exit.DONE
    assert (view(desk, "k1").status, len(dead(desk))) == (Status.DEAD_LETTERED, 1)


@pytest.mark.parametrize(
    "facts",
    [
        {"reason": []},
        {"reason": {"a": 1}, "signature": [], "attempts": "many", "error": 7, "dependency": []},
        {"reason": "x", "last_failure": "2026-01-01T00:00:00"},
        {"reason": "x", "attributes": {"a": 5}, "death": -1},
        {"reason": "x", "death": 10**9, "last_failure": "yesterday"},
        [],
    ],
    ids=str,
)
def test_a_letter_with_whatever_in_its_attribute_hides_no_other(facts: object) -> None:
    desk = desk_with("k1", "k2")
    mark(desk, facts)
    for words in (
        ("list",),
        ("groups",),
        ("list", "--since", "2026-01-01T00:00:00Z"),
        ("replay", "--all", "--dry-run"),
        ("show", operation_of("k2"), "--payload"),
    ):
        assert desk.run("dlq", *words) == Exit.DONE, words
    ends_well(desk)
    assert desk.run("dlq", "replay", operation_of("k1"), "--why", "x") == Exit.DONE


def test_what_a_letter_says_steers_no_terminal_and_is_no_markup() -> None:
    desk = desk_with("k1")
    wild = "[/] [bold]x[/bold] \x1b[2J\x9b31m\u202e\ud800\r\nstatus  completed"
    mark(desk, {"reason": wild, "signature": wild, "error": wild, "death": 1, "dependency": wild})
    for words in (("list",), ("groups",), ("show", operation_of("k1"))):
        assert desk.run("dlq", *words) == Exit.DONE
        told = desk.out.replace("\n", "")
        assert told.isprintable(), words
        assert "[bold]x[/bold]" in told
        assert not any(line.startswith("status") for line in desk.out.splitlines())


@pytest.mark.parametrize(
    "words",
    [
        ("discard", "", "--archive", "/nowhere", "--yes"),
        ("replay", ""),
        ("edit", "", "--payload", NEW),
        ("replay", "--all", "--rate", "nan"),
        ("replay", "--all", "--rate", "inf"),
    ],
    ids=" ".join,
)
def test_an_empty_id_means_no_letter_and_a_rate_is_a_number(words: tuple[str, ...]) -> None:
    desk = desk_with("k1")
    assert desk.run("dlq", *words, "--why", "x") == Exit.REFUSED
    assert (dead(desk), desk.audit) == (["k1"], [])


def test_a_letter_whose_copy_was_taken_up_is_not_edited() -> None:
    desk = desk_with("k1")
    with pytest.raises(Killed), dying(Failpoint.COPIES_SENT):
        desk.run("dlq", "replay", "--all", "--why", "x", "--canary", "0")
    desk.jobs.records[record_of("k1")] = replace(view(desk, "k1"), status=Status.COMPLETED)
    desk.clock.pass_(timedelta(seconds=61))
    assert desk.run("dlq", "edit", operation_of("k1"), "--payload", NEW, "--why", "x") == Exit.REFUSED
    assert "a replay of it was taken up" in desk.err
    assert (len(desk.queues[QUEUE].messages), dead(desk)) == (1, ["k1"])


def test_two_edited_letters_are_two_jobs_also_where_nobody_can_read_them_or_their_keys_are_long() -> None:
    desk = desk_with("k1", "k2")
    for letter in desk.queues[QUEUE].dead:
        letter.body = letter.body.replace('"idempotency_key": "k', f'"idempotency_key": "{"k" * 250}')
    bury_raw(desk, "no json")
    bury_raw(desk, "none either")
    for letter in list(desk.queues[QUEUE].dead):
        words = ("--job-type", "capture-payment", "--payload", NEW, "--why", "x")
        assert desk.run("dlq", "edit", letter.id, *words) == Exit.DONE
    keys = {read_message(kept.body).idempotency_key for kept in desk.queues[QUEUE].messages.values()}
    assert len(keys) == 4


def test_the_editor_shows_every_digit_and_the_payload_as_its_current_version_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    newer = replace(
        capture_payment,
        version=2,
        upgrades={1: lambda old: {"order_id": old["order"], "payment_intent_id": old["payment_intent_id"]}},
    )
    monkeypatch.setitem(JOB_TYPES.by_name, capture_payment.name, newer)
    desk = desk_with("k1")
    letter = desk.queues[QUEUE].dead[-1]
    old = {"order": 0.5, "payment_intent_id": "pi"}
    letter.body = json.dumps({**json.loads(letter.body), "payload": old}).replace("0.5", "12345678901234567.89")
    desk.typed = NEW
    assert desk.run("dlq", "edit", letter.id, "--why", "x", "--dry-run") == Exit.DONE
    (shown,) = desk.edited
    assert '"order_id": 12345678901234567.89' in shown


def test_an_archive_that_was_everybodys_is_ours_alone_and_a_line_that_was_cut_costs_no_letter(tmp_path: Path) -> None:
    desk = desk_with("k1", "k2")
    file = tmp_path / "a"
    file.write_text('{"worker": "paym', encoding="utf-8")
    file.chmod(0o644)
    for key in ("k1", "k2"):
        words = ("--why", "x", "--archive", str(file), "--yes")
        assert desk.run("dlq", "discard", operation_of(key), *words) == Exit.DONE
    cut, *lines = file.read_text().splitlines()
    assert cut == '{"worker": "paym'
    assert [json.loads(json.loads(line)["body"])["idempotency_key"] for line in lines] == ["k1", "k2"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_somebody_else_looks_at_meanwhile_is_not_told_as_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = desk_with("k1")
    write = desk.write

    def looks_and_writes(line: str) -> None:
        desk.queues[QUEUE].dead[0].visible_at = desk.clock.monotonic() + 60
        write(line)

    monkeypatch.setattr(desk, "write", looks_and_writes)
    words = ("dlq", "discard", "--all", "--why", "x", "--archive", str(tmp_path / "a"), "--yes", "--json")
    assert desk.run(*words) == Exit.LEFT
    assert (desk.json["discarded"], desk.json["gone_meanwhile"], dead(desk)) == (0, 1, ["k1"])


def test_a_redrive_of_aws_is_not_stopped_where_the_audit_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_with("k1")
    desk.redrive = Redrive("h", 3, 50)
    stopped: list[object] = []
    monkeypatch.setattr(
        "shared.backends.memory.dead_letters.MemoryDeadLetters.cancel", lambda _, which: stopped.append(which)
    )
    ends_well(desk)
    words = ("dlq", "replay", "--all", "--why", "x", "--cancel-aws-redrive")
    desk.audit_is_gone = True
    assert desk.run(*words) == Exit.NOT_DONE
    assert stopped == []
    desk.audit_is_gone = False
    assert desk.run(*words) == Exit.DONE
    assert stopped


def test_a_replay_that_finished_another_is_not_told_as_one_that_changed_nothing() -> None:
    desk = desk_with("k1")
    words = ("dlq", "replay", "--all", "--why", "x", "--canary", "0")
    with pytest.raises(Killed), dying(Failpoint.COPIES_SENT):
        desk.run(*words)
    desk.jobs.records[record_of("k1")] = replace(view(desk, "k1"), status=Status.COMPLETED)
    bury(desk, "k2", death=4)
    assert desk.run(*words) == Exit.LEFT
    assert dead(desk) == ["k2"]


def test_a_letter_with_whatever_for_attributes_in_its_reason_is_edited_all_the_same() -> None:
    desk = desk_with("k1")
    kept = {"stringValue": "y", "dataType": "String"}
    mark(desk, {"reason": "x", "death": 1, "attributes": {"a": 5, "b": kept, "c": None}})
    assert desk.run("dlq", "edit", operation_of("k1"), "--payload", NEW, "--why", "x") == Exit.DONE
    (sent,) = desk.queues[QUEUE].messages.values()
    assert list(sent.attributes) == ["b"]
