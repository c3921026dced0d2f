"""What people change by the pages: after a dry run, by the number, once, and told to the audit, as the commands do it."""

from __future__ import annotations

import json
import stat
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ops.console.deeds import FEW_KEPT, LOOK, MOST_KEPT
from ops.console.pages.edit import with_hidden
from ops.console.pages.letters import pretty
from ops.exits import CommandError
from ops.letters.archive import Archive
from shared.desk.dead_letter_queue import Redrive
from shared.errors import Unavailable
from shared.job_record import Status
from tests.console.visitor import Visitor, words_of
from tests.operated import ME
from tests.ops.desk import Desk
from tests.ops.letters import UNKNOWN_ORDER, bury, dead, ends_well, operation_of, view, visible

if TYPE_CHECKING:
    from pathlib import Path


def visited(folder: Path, *keys: str) -> Visitor:
    desk = Desk()
    for key in keys:
        bury(desk, key)
    return Visitor(folder, desk)


def test_a_replay_is_counted_agreed_to_by_the_number_watched_and_told_to_the_audit(tmp_path: Path) -> None:
    visitor = visited(tmp_path, *(f"k{number}" for number in range(7)))
    bury(visitor.desk, "other", UNKNOWN_ORDER)
    ends_well(visitor.desk)
    told = words_of(visitor.get("/change/replay?group=aaaaaaaaaaaa"))
    assert "7 letters were counted" in told
    assert not visitor.desk.audit
    assert visible(visitor.desk) == 8, "counting hides nothing for long"
    visitor.post("/change/replay", plan=visitor.plan, number="7", why="provider is back")
    deed = visitor.over("replay")
    assert deed.problem is None
    assert deed.facts["counts"]["replayed"] == 7
    assert deed.facts["counts"]["ended"] == {"completed": 7}
    assert deed.facts["stage"] == "is over"
    assert dead(visitor.desk) == ["other"]
    assert {line["outcome"] for line in visitor.desk.audit} == {"begins", "done"}
    assert {(line["who"], line["what"], line["why"]) for line in visitor.desk.audit} == {
        (ME, "dlq replay", "provider is back")
    }
    assert "7 completed" in words_of(visitor.get(f"/deeds/{deed.name}"))


def test_a_replay_whose_first_ones_die_again_stops_and_says_so(tmp_path: Path) -> None:
    visitor = visited(tmp_path, *(f"k{number}" for number in range(7)))
    desk = visitor.desk

    def dies(seconds: float) -> None:
        del seconds
        for key in (f"k{number}" for number in range(7)):
            seen = view(desk, key)
            if seen.status is Status.ACCEPTED:
                bury(desk, f"{key}", death=2)

    desk.clock.sleep = dies  # type: ignore[method-assign]
    visitor.get("/change/replay?group=aaaaaaaaaaaa")
    visitor.post("/change/replay", plan=visitor.plan, number="7", why="is it back?", watch_for="0")
    deed = visitor.over("replay")
    assert deed.facts["counts"]["replayed"] == 5
    assert "stopped by itself" in deed.facts["stage"]


@pytest.mark.parametrize("what", ["replay", "discard"])
def test_without_the_number_or_a_reason_nothing_is_changed(tmp_path: Path, what: str) -> None:
    visitor = visited(tmp_path, "k1", "k2")
    visitor.get(f"/change/{what}?all=1")
    plan = visitor.plan
    refused: tuple[dict[str, Any], ...] = (
        {"number": "1", "why": "x"},
        {"why": "x"},
        {"number": "2"},
        {"number": "2", "why": " "},
    )
    for words in refused:
        visitor.post(f"/change/{what}", plan=plan, **words)
        assert visitor.last.status_code == 409
    assert sorted(dead(visitor.desk)) == ["k1", "k2"]
    assert not visitor.desk.audit


def test_a_plan_is_agreed_to_once_and_for_what_it_was_shown_for(tmp_path: Path) -> None:
    visitor = visited(tmp_path, "k1")
    visitor.get("/change/replay?all=1")
    plan = visitor.plan
    visitor.post("/change/discard", plan=plan, number="1", why="x")
    assert visitor.last.status_code == 409
    visitor.get("/change/discard?all=1")
    plan = visitor.plan
    visitor.post("/change/discard", plan=plan, number="1", why="x")
    visitor.over("discard")
    assert "agreed to before" in visitor.post("/change/discard", plan=plan, number="1", why="x")
    assert len(visitor.house.deeds.all("discard")) == 1


def test_nothing_is_counted_where_nothing_is_chosen(tmp_path: Path) -> None:
    visitor = visited(tmp_path, "k1")
    assert "Say which letters" in visitor.get("/change/discard")
    assert "No letter is chosen" in visitor.get("/change/discard?group=unknown")


def test_a_discard_keeps_what_it_throws_away_where_only_its_owner_reads_it(tmp_path: Path) -> None:
    visitor = visited(tmp_path, "k1", "k2")
    visitor.get("/change/discard?id=m1")
    bury(visitor.desk, "late")
    visitor.post("/change/discard", plan=visitor.plan, number="1", why="test data")
    deed = visitor.over("discard")
    assert deed.facts["counts"]["discarded"] == 1
    assert sorted(dead(visitor.desk)) == ["k2", "late"]
    (archive,) = (tmp_path / "archives").iterdir()
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert "secret-k1" in archive.read_text()
    assert view(visitor.desk, "k1").status is Status.FAILED


def test_a_change_whose_audit_cannot_be_written_is_not_made(tmp_path: Path) -> None:
    visitor = visited(tmp_path, "k1")
    visitor.desk.audit_is_gone = True
    visitor.get("/change/discard?all=1")
    visitor.post("/change/discard", plan=visitor.plan, number="1", why="x")
    deed = visitor.over("discard")
    assert deed.problem is not None
    assert "Nothing was changed" in deed.problem
    assert "Nothing was changed" in visitor.get(f"/deeds/{deed.name}")
    assert dead(visitor.desk) == ["k1"]


def test_a_replay_beside_a_redrive_of_aws_is_refused(tmp_path: Path) -> None:
    visitor = visited(tmp_path, "k1")
    visitor.desk.redrive = Redrive("handle", 3, 9)
    visitor.get("/change/replay?all=1")
    visitor.post("/change/replay", plan=visitor.plan, number="1", why="x")
    assert "already running" in str(visitor.over("replay").problem)


def test_a_replay_is_stopped_by_hand_and_leaves_the_rest(tmp_path: Path) -> None:
    visitor = visited(tmp_path, *(f"k{number}" for number in range(7)))
    visitor.desk.clock.sleep = lambda _: visitor.house.deeds.all("replay")[0].stop()  # type: ignore[method-assign,assignment]
    visitor.get("/change/replay?all=1")
    visitor.post("/change/replay", plan=visitor.plan, number="7", why="x")
    deed = visitor.over("replay")
    assert "Stopped by hand" in str(deed.problem)
    assert len(dead(visitor.desk)) == 2
    assert [line["outcome"] for line in visitor.desk.audit] == ["begins", "broke off"]


def test_an_edit_shows_the_difference_first_and_sends_a_new_job_once(tmp_path: Path) -> None:
    visitor = visited(tmp_path, "k1")
    assert "secret-k1" in visitor.get("/letters/payments/m1/edit")
    payload = json.dumps({"order_id": "order-9", "payment_intent_id": "pi_secret"})
    text = visitor.post("/letters/payments/m1/edit", job_type="capture-payment", payload=payload)
    assert '<span class="plus">+  &#34;order_id&#34;: &#34;order-9&#34;,</span>' in text
    assert "Changed: order_id." in words_of(text)
    assert not visitor.desk.audit
    plan = visitor.plan
    visitor.post("/change/edit", plan=plan, why="a wrong order")
    assert visitor.last.status_code == 200
    assert not dead(visitor.desk)
    assert [line["what"] for line in visitor.desk.audit] == ["dlq edit", "dlq edit"]
    assert "agreed to before" in visitor.post("/change/edit", plan=plan, why="a wrong order")


def test_a_payload_that_would_be_refused_is_told_field_by_field_and_not_repeated(tmp_path: Path) -> None:
    visitor = visited(tmp_path, "k1")
    told = words_of(
        visitor.post("/letters/payments/m1/edit", job_type="capture-payment", payload='{"order_id": 99177}')
    )
    assert visitor.last.status_code == 409
    assert "payment_intent_id" in told
    assert "99177" not in told
    assert "no JSON" in visitor.post("/letters/payments/m1/edit", job_type="capture-payment", payload="{")


def test_a_hidden_value_stays_in_its_place() -> None:
    old = '{"a": "s1", "b": {"c": "s2"}, "d": ["s3", "s4"], "e": "open"}'
    shown = '{"a": "***", "b": {"c": "***"}, "d": ["***", "***"], "e": "open"}'
    new = '{"a": "***", "b": {"c": "***"}, "d": ["***", "x"], "f": "new"}'
    assert json.loads(with_hidden(new, shown, old)) == {"a": "s1", "b": {"c": "s2"}, "d": ["s3", "x"], "f": "new"}
    with pytest.raises(CommandError, match="no JSON"):
        with_hidden("{", shown, old)


@pytest.mark.parametrize(
    "new",
    [
        '{"d": [{"n": "B", "c": "***"}]}',  # the first entry is taken out: the second would get its value
        '{"d": [{"n": "B", "c": "***"}, {"n": "A", "c": "***"}]}',
        '{"d": [{"n": "A", "c": "***"}, {"n": "B", "c": "***"}, {"n": "C", "c": "***"}]}',
        '{"d": {"n": "***"}}',
        '{"renamed": "***"}',
        '{"e": "***"}',
    ],
)
def test_a_hidden_value_goes_to_no_other_place_and_is_never_sent_as_it_was_shown(new: str) -> None:
    old = '{"d": [{"n": "A", "c": "s1"}, {"n": "B", "c": "s2"}], "e": "open"}'
    shown = '{"d": [{"n": "A", "c": "***"}, {"n": "B", "c": "***"}], "e": "open"}'
    with pytest.raises(CommandError, match="write the value itself"):
        with_hidden(new, shown, old)


def test_an_edit_hides_what_either_schema_hides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(job_type: str, payload: str) -> str:
        known = json.loads(payload)
        return json.dumps({**known, "order_id": "***"} if job_type == "capture-payment" else known)

    monkeypatch.setattr("ops.console.pages.edit.shown_payload", shown)
    visitor = visited(tmp_path, "k1")
    for words in ("", "?job_type=reconcile-payment"):
        text = visitor.get(f"/letters/payments/m1/edit{words}")
        assert visitor.last.status_code == 200
        assert "***" in text
        assert "secret-k1" not in text


def test_the_old_payload_keeps_every_digit() -> None:
    assert "0.12345678901234567890123" in pretty('{"amount":0.12345678901234567890123}')
    assert pretty("no JSON") == "no JSON"


def test_an_edit_that_was_not_made_can_be_agreed_to_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = visited(tmp_path, "k1")
    payload = json.dumps({"order_id": "order-9", "payment_intent_id": "pi_secret"})
    visitor.post("/letters/payments/m1/edit", job_type="capture-payment", payload=payload)
    plan = visitor.plan
    with monkeypatch.context() as gone:
        gone.setattr("ops.console.pages.edit.put", raising(Unavailable("no answer", dependency="sqs")))
        visitor.post("/change/edit", plan=plan, why="x")
        assert visitor.last.status_code == 502
    visitor.post("/change/edit", plan=plan, why="x")
    assert visitor.last.status_code == 200
    assert not dead(visitor.desk)


def raising(error: Exception) -> Any:
    def raises(*_: object) -> None:
        raise error

    return raises


def test_a_replay_takes_the_letters_that_were_counted_and_no_later_ones(tmp_path: Path) -> None:
    visitor = visited(tmp_path, "k1", "k2")
    ends_well(visitor.desk)
    visitor.get("/change/replay?all=1")
    for number in range(5):
        bury(visitor.desk, f"late{number}")
    visitor.post("/change/replay", plan=visitor.plan, number="2", why="x")
    assert visitor.over("replay").facts["counts"]["replayed"] == 2
    assert dead(visitor.desk) == [f"late{number}" for number in range(5)]


def test_a_discard_is_stopped_by_hand_and_tells_what_is_done_and_where_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.letters.discard.CHUNK", 2)
    visitor = visited(tmp_path, *(f"k{number}" for number in range(6)))
    visitor.get("/change/discard?all=1")
    add = Archive.add

    def stopped(self: Archive, dossiers: Any) -> None:
        visitor.house.deeds.all("discard")[0].stop()
        add(self, dossiers)

    monkeypatch.setattr(Archive, "add", stopped)
    visitor.post("/change/discard", plan=visitor.plan, number="6", why="x")
    deed = visitor.over("discard")
    assert "Stopped by hand" in str(deed.problem)
    assert len(dead(visitor.desk)) == 4
    assert (deed.facts["counts"]["discarded"], deed.facts["counts"]["gone_meanwhile"]) == (2, None)
    assert deed.facts["counts"]["archive"] in words_of(visitor.get(f"/deeds/{deed.name}"))


def test_a_discard_that_breaks_off_tells_nothing_of_what_it_did_not_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.letters.discard.CHUNK", 2)
    visitor = visited(tmp_path, *(f"k{number}" for number in range(6)))
    visitor.get("/change/discard?all=1")
    add, times = Archive.add, []

    def full(self: Archive, dossiers: Any) -> None:
        times.append(1)
        if len(times) > 1:
            raise OSError
        add(self, dossiers)

    monkeypatch.setattr(Archive, "add", full)
    visitor.post("/change/discard", plan=visitor.plan, number="6", why="x")
    deed = visitor.over("discard")
    assert "archive cannot be written" in str(deed.problem)
    assert (deed.facts["counts"]["discarded"], deed.facts["counts"]["gone_meanwhile"]) == (2, None)
    assert "archive" in deed.facts["counts"]


def test_looks_push_no_change_out_and_letters_are_not_kept_for_ever(tmp_path: Path) -> None:
    visitor = visited(tmp_path, "k1", "k2")
    visitor.get("/change/discard?id=m1")
    visitor.post("/change/discard", plan=visitor.plan, number="1", why="x")
    deed = visitor.over("discard")
    for _ in range(MOST_KEPT + 1):
        visitor.get("/letters?again=1")
    visitor.get(f"/deeds/{deed.name}")
    assert visitor.last.status_code == 200
    assert len(visitor.house.deeds.all(LOOK)) <= FEW_KEPT + 1
    assert len(visitor.house.looks) == 1


def test_a_job_that_has_changed_since_the_page_is_left_alone(tmp_path: Path) -> None:
    visitor = visited(tmp_path, "k1")
    job = operation_of("k1")
    visitor.get(f"/jobs/{job}/cancel?insist=1")
    seen = visitor.hidden("seen")
    bury(visitor.desk, "k1", death=2)
    visitor.post(f"/jobs/{job}/cancel", insist="1", why="asked for", seen=seen)
    assert visitor.last.status_code == 409
    assert "has changed since" in words_of(visitor.last.text)
    assert view(visitor.desk, "k1").status is Status.DEAD_LETTERED


def test_a_brake_that_was_put_on_since_the_page_is_not_taken_off(tmp_path: Path) -> None:
    visitor = Visitor(tmp_path)
    visitor.get("/workers/payments")
    seen = visitor.hidden("seen")
    visitor.post("/workers/payments/pause", name="payments", why="migration runs", time="30m", seen=seen)
    assert visitor.last.status_code == 200
    visitor.post("/workers/payments/resume", name="payments", why="done", seen=seen)
    assert visitor.last.status_code == 409
    assert "payments" in visitor.desk.brakes.brakes


def test_a_job_is_cancelled_after_its_dry_run_and_with_a_reason(tmp_path: Path) -> None:
    visitor = visited(tmp_path, "k1")
    job = operation_of("k1")
    assert "--although-begun" in visitor.get(f"/jobs/{job}/cancel")
    assert "dry run" in visitor.get(f"/jobs/{job}/cancel?insist=1")
    seen = visitor.hidden("seen")
    visitor.post(f"/jobs/{job}/cancel", insist="1", seen=seen)
    assert visitor.last.status_code == 409
    assert view(visitor.desk, "k1").status is Status.DEAD_LETTERED
    visitor.post(f"/jobs/{job}/cancel", insist="1", why="asked for", seen=seen)
    assert view(visitor.desk, "k1").status is Status.CANCELLED
    assert "nothing to give back" in visitor.get(f"/jobs/{job}/release")


def test_a_worker_is_paused_and_freed_by_its_name_with_a_reason(tmp_path: Path) -> None:
    visitor = Visitor(tmp_path)
    visitor.post("/workers/payments/pause", name="users", why="x", time="1h")
    assert visitor.last.status_code == 409
    assert not visitor.desk.brakes.brakes
    visitor.get("/workers/payments")
    visitor.post("/workers/payments/pause", name="payments", why="migration", time="30m", seen=visitor.hidden("seen"))
    brake = visitor.desk.brakes.brakes["payments"]
    assert brake.until - brake.since == timedelta(minutes=30)
    assert visitor.desk.mapped.running == {"payments": 0}
    assert "migration" in visitor.get("/workers/payments")
    visitor.post("/workers/payments/resume", name="payments", why="done", seen=visitor.hidden("seen"))
    assert not visitor.desk.brakes.brakes
    assert [line["what"] for line in visitor.desk.audit] == ["pause", "pause", "resume", "resume"]
    visitor.post("/workers/nobody/pause", name="nobody", why="x")
    assert visitor.last.status_code == 404


def test_what_was_typed_beside_a_wrong_number_is_kept_and_can_be_agreed_to(tmp_path: Path) -> None:
    visitor = visited(tmp_path, "k1", "k2")
    ends_well(visitor.desk)
    visitor.get("/change/replay?all=1")
    text = visitor.post(
        "/change/replay", plan=visitor.plan, number="3", why='the "provider" is back', canary="1", no_watch="1"
    )
    assert visitor.last.status_code == 409
    assert "Type 2, the number of letters" in words_of(text)
    assert 'name="why" value="the &#34;provider&#34; is back"' in text
    assert 'name="number" inputmode="numeric" value="3"' in text
    assert 'name="canary" inputmode="numeric" value="1"' in text
    assert 'name="no_watch" value="1" checked' in text
    assert 'name="force" value="1">' in text
    visitor.post("/change/replay", plan=visitor.plan, number="2", why="the provider is back")
    assert visitor.over("replay").facts["counts"]["replayed"] == 2


def test_what_was_typed_beside_a_wrong_name_is_kept_in_its_form(tmp_path: Path) -> None:
    visitor = Visitor(tmp_path)
    visitor.get("/workers/payments")
    seen = visitor.hidden("seen")
    text = visitor.post("/workers/payments/pause", name="payment", why="migration", time="30m", seen=seen)
    assert visitor.last.status_code == 409
    assert "Type payments to agree" in words_of(text)
    for typed in ('"time" value="30m"', '"why" value="migration"', '"name" value="payment"'):
        assert text.count(f"name={typed}") == 1, "in the form that was sent, and not in the other"
    text = visitor.post("/workers/payments/pause", name="payments", why="x", time="soon", seen=seen)
    assert "give a time like 90s" in words_of(text)
    assert 'name="time" value="soon"' in text
    assert not visitor.desk.brakes.brakes


def test_an_edit_is_listed_among_the_changes_also_one_that_was_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = visited(tmp_path, "k1")
    payload = json.dumps({"order_id": "order-9", "payment_intent_id": "pi_secret"})
    visitor.post("/letters/payments/m1/edit", job_type="capture-payment", payload=payload)
    plan = visitor.plan
    with monkeypatch.context() as gone:
        gone.setattr("ops.console.pages.edit.put", raising(Unavailable("no answer", dependency="sqs")))
        visitor.post("/change/edit", plan=plan, why="a wrong order")
    visitor.post("/change/edit", plan=plan, why="a wrong order")
    told = words_of(visitor.get("/deeds"))
    assert "Edit of letter m1 : is over" in told
    assert "Edit of letter m1 : no answer" in told
    text = visitor.get(f"/deeds/{visitor.over('edit').name}")
    assert "Why: a wrong order" in words_of(text)
    assert "secret" not in text
