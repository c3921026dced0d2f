"""Replaying dead letters with the product's own consumer behind the queue, in memory and in virtual time."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ops.letters.report import Stop
from ops.letters.selection import Selection
from ops.letters.sending import copy_of
from ops.letters.verdict import Fate
from shared.dead_letter import Death
from shared.delivery import DEAD_LETTER_ATTRIBUTE
from shared.errors import Refused, Unavailable
from shared.failpoints import Failpoint, armed
from shared.job_record import Replayed, Status
from shared.outcome import Failure
from shared.producer import NotTaken
from tests.dead_letters import House
from tests.dying import Killed, dying
from tests.operated import ME
from tests.world import START, body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ops.letters.report import Report
    from shared.desk.dead_letter_queue import Copy

STEPS = (Failpoint.LETTERS_TAKEN, Failpoint.REOPENED, Failpoint.COPIES_SENT, Failpoint.LETTERS_DELETED)
A, B = "cause-a", "cause-b"


def house_with(*names: str, cause: str = A, **options: Any) -> House:
    house = House(broken={cause}, **options)
    house.send(*names, cause=cause)
    house.work()
    assert len(house.dead()) == len(names)
    return house


def test_a_repaired_job_runs_once_with_fresh_attempts_and_its_letter_is_gone() -> None:
    house = house_with("one", "two")
    house.broken.clear()
    report = house.replay()
    assert (report.fates[Fate.REPLAYED], report.ended[Status.COMPLETED], report.stop) == (2, 2, None)
    assert house.effects == {"one": 1, "two": 1}
    assert house.dead() == []
    assert house.view("one").replayed is not None


def test_dlq_01_a_copy_keeps_body_attributes_group_and_trace_and_carries_its_death() -> None:
    house = house_with("one")
    (letter,) = house.queue.dead
    letter.group, letter.trace = "tenant-7", "Root=1-2-3"
    letter.attributes["bytes"] = {"DataType": "Binary.x", "BinaryValue": b"\x00\xff"}
    house.clock.meanwhile = None
    house.replay(watches=False)
    (copy,) = house.queue.messages.values()
    assert (copy.body, copy.group, copy.trace) == (letter.body, "tenant-7", "Root=1-2-3")
    assert copy.attributes["tenant"]["StringValue"] == "t1"
    assert copy.attributes["bytes"] == {"DataType": "Binary.x", "BinaryValue": b"\x00\xff"}
    assert house.marks() == {"one": {"death": 1}}
    assert (house.status("one"), house.view("one").death) == (Status.ACCEPTED, 1)


def test_a_replay_stops_by_itself_within_the_first_ones_where_the_cause_is_not_repaired() -> None:
    names = [f"n{number}" for number in range(40)]
    house = house_with(*names)
    before = len(house.ran)
    report = house.replay(canary=5)
    assert report.stop is Stop.DIED_AGAIN
    assert sum(report.died_again.values()) >= 1
    assert report.fates[Fate.REPLAYED] == 5
    assert len(house.ran) - before <= 5
    house.work()
    assert sorted(house.dead()) == sorted(names)
    assert house.visible() == 40


def test_of_two_causes_the_repaired_group_is_replayed_and_the_other_is_not_touched() -> None:
    house = House(broken={A, B})
    house.send(*(f"a{number}" for number in range(30)), cause=A)
    house.send(*(f"b{number}" for number in range(30)), cause=B)
    house.work()
    house.broken.discard(A)
    with house.desk.taken(lambda _: False, 1000, 1000) as survey:
        signatures = {dossier.reason: dossier.signature for dossier in survey.dossiers}
    report = house.replay(Selection(group=signatures[A]))
    assert (report.fates[Fate.REPLAYED], report.deaths) == (30, 0)
    assert len(house.dead()) == 30
    assert {house.status(f"b{number}") for number in range(30)} == {Status.DEAD_LETTERED}


def test_the_rest_stops_where_more_than_a_tenth_dies_again() -> None:
    house = House(broken={A, B})
    house.send(*(f"a{number}" for number in range(150)), cause=A)
    house.send(*(f"b{number}" for number in range(450)), cause=B)
    house.work()
    house.broken.discard(A)
    report = house.replay(rate=50)
    assert report.stop is Stop.DIED_AGAIN
    assert report.ended[Status.COMPLETED] >= 100
    assert report.fates[Fate.REPLAYED] < 600


def test_dlq_06_three_of_fifty_are_replayed_by_their_ids_and_the_others_are_there_for_everybody_at_once() -> None:
    names = [f"n{number}" for number in range(50)]
    house = house_with(*names)
    house.broken.clear()
    chosen = ("n3", "n17", "n42")
    operations = tuple(house.view(name).names["operation_id"] for name in chosen)
    seen: list[int] = []
    with armed(lambda point: seen.append(house.visible()) if point is Failpoint.LETTERS_TAKEN else None):
        report = house.replay(Selection(ids=operations))
    assert report.fates[Fate.REPLAYED] == 3
    assert seen[0] == 47
    assert house.visible() == 47
    assert sorted(house.dead()) == sorted(set(names) - set(chosen))


@pytest.mark.parametrize(
    ("point", "after"),
    [
        *((point, 0) for point in STEPS),
        *((point, after) for point in (Failpoint.COPIES_SENT, Failpoint.LETTERS_DELETED) for after in (1, 2)),
        (Failpoint.LETTERS_TAKEN, 1),
    ],
)
def test_dlq_04_a_replay_that_dies_at_any_step_loses_nothing_and_run_again_it_doubles_nothing(
    point: Failpoint, after: int
) -> None:
    names = [f"n{number}" for number in range(25)]
    house = house_with(*names)
    house.broken.clear()
    house.clock.meanwhile = None
    with dying(point, after + 1), pytest.raises(Killed):
        house.replay(canary=0, watches=False)
    there = set(house.dead()) | {json.loads(m.body)["payload"]["thing"] for m in house.queue.messages.values()}
    assert there == set(names)
    house.clock.meanwhile = house.work_a_little
    house.clock.pass_(timedelta(seconds=61))  # its letters come back
    house.replay(canary=0)
    house.work()
    assert house.effects == dict.fromkeys(names, 1)
    assert {house.status(name) for name in names} == {Status.COMPLETED}
    assert house.dead() == []


def test_a_replay_that_died_after_the_send_is_finished_by_the_next_one_though_the_job_has_ended() -> None:
    house = house_with("one")
    house.broken.clear()
    with dying(Failpoint.COPIES_SENT), pytest.raises(Killed):
        house.replay(watches=False)
    house.work()
    assert house.status("one") is Status.COMPLETED
    report = house.replay()
    assert (report.fates[Fate.FINISHED], house.dead(), house.effects["one"]) == (1, [], 1)


def test_a_letter_that_sqs_moved_is_finished_too_where_its_replay_died_after_the_send() -> None:
    house = House()
    house.send("one")
    (record,) = house.queue.receive()
    with dying(Failpoint.CLAIMED), pytest.raises(Killed):
        house.world.execute(record["body"])
    for _ in range(house.queue.max_receives):
        house.clock.pass_(timedelta(minutes=5))
        house.queue.receive()
    assert house.dead() == ["one"]
    with dying(Failpoint.COPIES_SENT), pytest.raises(Killed):
        house.replay(watches=False)
    house.work()
    assert house.status("one") is Status.COMPLETED
    report = house.replay()
    assert (report.fates, house.dead(), house.effects) == ({Fate.FINISHED: 1}, [], {"one": 1})


def test_two_operators_at_one_time_replay_each_letter_once() -> None:
    house = house_with(*(f"n{number}" for number in range(30)))
    house.broken.clear()
    reports: list[Report] = []
    begun: list[Failpoint] = []

    def another(at: Failpoint) -> None:
        if at is Failpoint.REOPENED and not begun:
            begun.append(at)
            reports.append(house.replay(canary=0))

    with armed(another):
        report = house.replay(canary=0)
    house.work()
    assert house.effects == {f"n{number}": 1 for number in range(30)}
    assert report.fates[Fate.REPLAYED] + reports[0].fates[Fate.REPLAYED] == 30


def test_dlq_05_the_fourth_replay_of_a_poison_message_is_refused_and_may_be_insisted_on() -> None:
    house = house_with("poison")
    for _ in range(3):
        assert house.replay().stop is Stop.DIED_AGAIN
        house.work()
    refused = house.replay()
    (left,) = refused.left
    assert (left.fate, refused.fates[Fate.REPLAYED]) == (Fate.TOO_OFTEN, 0)
    assert (left.dossier.death, len(left.dossier.view.failures if left.dossier.view else ())) == (4, 4)
    assert house.visible() == 1
    house.broken.clear()
    assert house.replay(most_deaths=None).ended == {Status.COMPLETED: 1}


def test_dlq_05_a_poison_that_nobody_can_read_is_counted_too() -> None:
    house = House()
    house.send_raw("no json")
    house.work()
    for _ in range(3):
        assert house.replay(canary=0).unwatched == 1
        house.work()
    assert [left.fate for left in house.replay(canary=0).left] == [Fate.TOO_OFTEN]


def test_what_nobody_can_watch_stops_a_replay_after_the_first_ones() -> None:
    house = House()
    house.send_raw(*(f"no json {number}" for number in range(8)))
    house.work()
    report = house.replay(canary=2)
    assert (report.stop, report.fates[Fate.REPLAYED]) == (Stop.NOT_WATCHED, 2)


def test_first_ones_that_are_not_decided_in_time_stop_the_rest() -> None:
    house = house_with(*(f"n{number}" for number in range(8)))
    house.clock.meanwhile = None
    report = house.replay(canary=2, patience=timedelta(seconds=5))
    assert (report.stop, report.fates[Fate.REPLAYED]) == (Stop.UNDECIDED, 2)


def test_a_letter_that_comes_back_at_once_is_not_replayed_again_by_the_same_run() -> None:
    house = house_with("one")
    house.send_raw("no json")
    house.work()

    def at_once(at: Failpoint) -> None:
        if at is Failpoint.LETTERS_DELETED:
            house.work()

    with armed(at_once):
        report = house.replay(canary=0, watches=False)
    assert report.fates == {Fate.REPLAYED: 2}
    assert len(house.queue.dead) == 2


def test_a_job_that_has_ended_is_not_replayed_and_its_letter_stays() -> None:
    house = house_with("one")
    view = house.view("one")
    house.database.records[view.record] = replace(view, status=Status.CANCELLED)
    report = house.replay()
    assert [left.fate for left in report.left] == [Fate.ENDED]
    assert house.dead() == ["one"]
    assert house.queue.messages == {}


def moved_by_sqs(house: House, name: str) -> None:
    """SQS takes a message away that was received too often."""
    house.send(name)
    for _ in range(house.queue.max_receives):
        assert house.queue.receive()
        house.clock.pass_(house.queue.visibility)
    assert house.queue.receive() == []
    assert house.dead()[-1] == name


def test_bat_08_a_message_that_was_never_attempted_is_told_from_one_that_failed_and_runs_when_replayed() -> None:
    house = house_with("failed")
    moved_by_sqs(house, "untouched")
    kinds = {d.message.idempotency_key: d.kind for d in house.desk.look(100).dossiers if d.message}
    assert kinds == {"failed": Death.FAILED, "untouched": Death.NEVER_ATTEMPTED}
    house.broken.clear()
    report = house.replay()
    assert report.ended == {Status.COMPLETED: 2}
    assert house.effects == {"failed": 1, "untouched": 1}


def test_loc_02_a_job_whose_attempts_ended_without_a_word_is_reopened_under_a_death_of_its_own() -> None:
    house = House()
    moved_by_sqs(house, "one")
    house.send("one")
    (record,) = house.queue.receive()
    with dying(Failpoint.CLAIMED), pytest.raises(Killed):
        house.world.execute(record["body"])
    house.queue.delete(record["receiptHandle"])
    assert house.status("one") is Status.RUNNING
    assert house.replay().left[0].fate is Fate.UNDER_WAY
    house.clock.pass_(timedelta(minutes=5))
    house.clock.meanwhile = None
    house.replay(watches=False)
    assert house.marks() == {"one": {"death": 1}}
    assert (house.view("one").status, house.view("one").death) == (Status.ACCEPTED, 1)
    house.work()
    assert house.effects == {"one": 1}


def test_a_job_that_the_rescue_gave_up_is_replayed_from_the_letter_it_left() -> None:
    house = House()
    moved_by_sqs(house, "one")
    house.send("one")
    house.work_a_little()
    view = house.view("one")
    gone = Failure(START, "message-lost", "x", "message-lost")
    house.database.records[view.record] = replace(
        view,
        status=Status.DEAD_LETTERED,
        death=1,
        last_failure=gone,
        payload='{"text":"fine","thing":"one"}',
        expires=None,
    )
    house.effects.clear()
    assert house.replay().ended == {Status.COMPLETED: 1}
    assert house.effects == {"one": 1}


def test_a_letter_from_before_a_later_death_stays_where_it_is() -> None:
    house = house_with("one")
    view = house.view("one")
    house.database.records[view.record] = replace(view, death=2)
    assert [left.fate for left in house.replay().left] == [Fate.OLDER]


def test_a_letter_of_a_key_that_was_used_for_another_payload_reopens_no_job() -> None:
    house = house_with("one")
    house.queue.send([])
    house.send_raw(body(idempotency_key="one", payload={"thing": "other"}))
    house.work()
    assert len(house.queue.dead) == 2
    before = house.view("one")
    house.clock.meanwhile = None
    house.replay(Selection(reason="idempotency-key-reused"), watches=False)
    assert house.view("one") == before


def test_dlq_03_a_fifo_groups_letters_are_replayed_in_order_also_twice_within_a_minute() -> None:
    house = House(fifo=True, broken={A})
    for number in range(3):
        house.send(f"x{number}", cause=A, group="x")
        house.send(f"y{number}", cause=A, group="y")
    house.work()
    for _ in range(2):
        house.ran.clear()
        house.replay(watches=False)
        house.work()
        assert sorted(house.dead()) == ["x0", "x1", "x2", "y0", "y1", "y2"]
        for group in "xy":
            assert [name for name in house.ran if name[0] == group] == [f"{group}{number}" for number in range(3)]
    assert {letter.group for letter in house.queue.dead} == {"x", "y"}


class Refusing:
    """A dead-letter queue whose target refuses some copies, does not answer, or is gone."""

    def __init__(self, inner: Any, *, refuses: set[int] = frozenset(), error: Exception | None = None) -> None:  # type: ignore[assignment]
        self.inner, self.refuses, self.error, self.sent = inner, refuses, error, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def send(self, copies: Sequence[Copy]) -> list[Any]:
        if self.error is not None:
            raise self.error
        answers: list[Any] = []
        for copy in copies:
            self.sent += 1
            refused = self.sent in self.refuses
            answers.append(NotTaken("AccessDenied", final=True) if refused else self.inner.send([copy])[0])
        return answers


def test_dlq_04_what_the_target_did_not_take_stays_and_is_told() -> None:
    house = house_with("n1", "n2", "n3", "n4", "n5")
    house.letters = Refusing(house.letters, refuses={3})  # type: ignore[assignment]
    house.clock.meanwhile = None
    report = house.replay(watches=False)
    assert (report.fates[Fate.REPLAYED], report.fates[Fate.NOT_SENT], report.has_failures) == (4, 1, True)
    assert report.left[0].why == "AccessDenied"
    assert len(house.dead()) == 1
    assert house.visible() == 1
    assert len(house.queue.messages) == 4


@pytest.mark.parametrize(
    "error", [Refused("sqs refuses it (QueueDoesNotExist)."), Unavailable("no answer", dependency="sqs")]
)
def test_dlq_04_a_target_that_is_gone_costs_no_letter(error: Exception) -> None:
    house = house_with("n1", "n2", "n3", "n4", "n5")
    house.letters = Refusing(house.letters, error=error)  # type: ignore[assignment]
    report = house.replay()
    assert (report.fates[Fate.NOT_SENT], report.stop) == (5, Stop.NOT_DONE)
    assert house.visible() == 5


def test_dlq_03_a_group_stands_still_behind_a_letter_that_was_not_sent() -> None:
    house = House(fifo=True, broken={A})
    for name in ("x0", "x1", "y0"):
        house.send(name, cause=A, group=name[0])
        house.work()
    house.broken.clear()
    house.letters = Refusing(house.letters, refuses={1})  # type: ignore[assignment]
    report = house.replay(canary=0, watches=False)
    assert [left.fate for left in report.left] == [Fate.NOT_SENT, Fate.BEHIND]
    assert sorted(house.dead()) == ["x0", "x1"]


def test_what_sqs_did_not_delete_is_told_and_finished_by_the_next_run() -> None:
    house = house_with("one")
    house.broken.clear()
    letters = house.letters

    class Keeping(Refusing):
        def delete(self, _: object) -> frozenset[str]:
            return frozenset()

    house.letters = Keeping(letters)  # type: ignore[assignment]
    report = house.replay(canary=0)
    assert (report.fates, report.has_failures) == ({Fate.NOT_DELETED: 1}, True)
    house.letters = letters
    house.work()
    assert house.replay().fates == {Fate.FINISHED: 1}
    assert house.effects == {"one": 1}


def test_a_replay_costs_about_a_third_of_a_call_a_letter() -> None:
    house = house_with(*(f"n{number}" for number in range(200)))
    house.clock.meanwhile = None
    calls: list[str] = []

    class Counting:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            value = getattr(self.inner, name)
            if not callable(value):
                return value

            def call(*arguments: Any) -> Any:
                weight = -(-len(arguments[0]) // 50) if name == "reopen" else 1
                calls.extend([name] * weight)
                return value(*arguments)

            return call

    house.letters, house.operator = Counting(house.letters), Counting(house.operator)  # type: ignore[assignment]
    report = house.replay(canary=0, watches=False)
    assert report.fates[Fate.REPLAYED] == 200
    assert len(calls) <= 0.36 * 200, calls


def test_a_rate_is_kept() -> None:
    house = house_with(*(f"n{number}" for number in range(60)))
    house.broken.clear()
    begun = house.clock.monotonic()
    house.replay(canary=0, rate=5, watches=False)
    assert 10 <= house.clock.monotonic() - begun <= 13


def test_who_replayed_a_job_stands_in_its_record() -> None:
    house = house_with("one")
    house.broken.clear()
    house.replay()
    assert house.view("one").replayed is not None
    assert house.view("one").replayed.by == ME  # type: ignore[union-attr]


def test_a_reader_that_dies_gives_its_letters_back_by_the_queues_clock_at_the_latest() -> None:
    house = house_with(*(f"n{number}" for number in range(15)))
    assert len(house.desk.look(100).dossiers) == 15
    assert house.visible() == 15
    with pytest.raises(Killed), house.desk.taken(lambda _: True, 5):
        raise Killed
    assert house.visible() == 15


def test_a_look_that_was_cut_short_says_so() -> None:
    house = house_with(*(f"n{number}" for number in range(25)))
    assert house.desk.look(10).cut
    assert not house.desk.look(100).cut


def test_letters_with_ten_attributes_keep_them_within_the_mark() -> None:
    house = house_with("one")
    (letter,) = house.queue.dead
    facts = json.loads(letter.attributes[DEAD_LETTER_ATTRIBUTE]["StringValue"])
    folded = {f"a{number}": {"stringValue": "x", "dataType": "String"} for number in range(10)}
    text = json.dumps({**facts, "attributes": folded})
    letter.attributes = {DEAD_LETTER_ATTRIBUTE: {"DataType": "String", "StringValue": text}}
    house.clock.meanwhile = None
    house.replay(watches=False)
    assert house.marks()["one"] == {"death": 1, "attributes": folded}


def test_a_job_that_changes_while_its_letter_is_held_is_left_and_nothing_is_sent() -> None:
    house = house_with("one")
    view = house.view("one")

    def change(at: Failpoint) -> None:
        if at is Failpoint.LETTERS_TAKEN:
            house.database.records[view.record] = replace(view, attempts=9)

    with armed(change):
        report = house.replay()
    assert [left.fate for left in report.left] == [Fate.CHANGED]
    assert (house.dead(), house.queue.messages) == (["one"], {})


def test_what_cannot_be_looked_through_in_time_is_told_and_not_taken_for_nothing() -> None:
    house = house_with(*(f"n{number}" for number in range(25)))
    receive = house.letters.receive

    class Slow(Refusing):
        def receive(self, hidden: timedelta) -> Any:
            house.clock.pass_(timedelta(seconds=20))
            return receive(hidden)

    house.letters = Slow(house.letters)  # type: ignore[assignment]
    assert house.replay(Selection(ids=("n-nowhere",))).stop is Stop.NOT_FOUND


def test_one_letter_among_many_is_found_without_a_look_at_the_records_of_each_ten() -> None:
    house = house_with(*(f"n{number}" for number in range(300)))
    looks: list[int] = []
    views = house.operator.views

    def counted(records: Sequence[str]) -> Any:
        looks.append(len(records))
        return views(records)

    house.operator.views = counted  # type: ignore[method-assign]
    house.clock.meanwhile = None
    name = house.view("n280").names["operation_id"]
    assert house.replay(Selection(ids=(name,)), watches=False).fates == {Fate.REPLAYED: 1}
    assert max(looks) == 100
    assert len(looks) <= 8


def stray(house: House, key: str, **envelope: Any) -> None:
    """A letter under the key of another job, which no claim has compared with that job's record."""
    house.send_raw(body(idempotency_key=key, payload={"thing": 7}, **envelope))
    house.work()


@pytest.mark.parametrize("status", [Status.ACCEPTED, Status.RETRYING, Status.DEAD_LETTERED])
def test_i16_a_letter_of_another_payload_changes_nothing_about_the_living_job_whose_key_it_has(status: Status) -> None:
    house = House()
    house.send("one")
    house.work()
    payload = '{"text":"fine","thing":"one"}'
    before = replace(house.view("one"), status=status, payload=payload, expires=None, ended_at=None)
    house.database.records[before.record] = before
    stray(house, "one")
    (letter,) = house.desk.look(10).dossiers
    assert (letter.reason, letter.record, letter.view) == ("invalid-payload", None, None)
    house.clock.meanwhile = None
    house.replay(watches=False)
    assert house.view("one") == before
    assert len(house.queue.messages) == 1


def test_i16_a_letter_that_names_the_record_of_another_job_does_not_touch_it() -> None:
    house = house_with("one")
    before = house.view("one")
    stray(house, "two", record=before.record)
    house.clock.meanwhile = None
    house.replay(Selection(reason="invalid-payload"), watches=False)
    assert house.view("one") == before


def test_a_letter_whose_attempts_were_spent_is_its_jobs_in_whatever_words_the_payload_came() -> None:
    house = house_with("one")
    before = house.view("one")
    house.database.records[before.record] = replace(before, payload='{"thing":"one","text":"cause-a","note":null}')
    house.broken.clear()
    assert house.replay().ended == {Status.COMPLETED: 1}


def test_a_job_that_a_reconciliation_let_run_again_keeps_its_letter_until_a_copy_is_sent() -> None:
    house = house_with("one")
    house.broken.clear()
    house.replay()
    again = {"status": Status.RETRYING, "death": 0, "expires": None, "ended_at": None, "attempts": 1}
    view = replace(house.view("one"), **again, payload='{"text":"cause-a","thing":"one"}')  # type: ignore[arg-type]
    assert view.replayed is not None
    house.database.records[view.record] = view
    house.send("one", cause=A)
    for _ in range(house.queue.max_receives):
        assert house.queue.receive()
        house.clock.pass_(house.queue.visibility)
    assert house.queue.receive() == []
    assert house.replay().fates == {Fate.REPLAYED: 1}
    assert house.effects["one"] == 2


def test_the_first_ones_are_taken_no_faster_than_they_are_sent() -> None:
    house = house_with(*(f"n{number}" for number in range(60)))
    house.broken.clear()
    held: list[int] = []
    with armed(lambda at: held.append(len(house.dead()) - house.visible()) if at is Failpoint.LETTERS_TAKEN else None):
        report = house.replay(canary=40, rate=1.0)
    assert report.fates[Fate.REPLAYED] == 60
    assert max(held) <= 15


def test_deaths_behind_a_hundred_slow_jobs_are_seen_too() -> None:
    house = house_with(*(f"n{number:03}" for number in range(900)))

    def only_the_later_ones(at: Failpoint) -> None:
        if at is not Failpoint.LETTERS_DELETED:
            return
        for record, view in list(house.database.records.items()):
            if view.status is Status.ACCEPTED and view.names["idempotency_key"] >= "n100":
                house.database.records[record] = replace(view, status=Status.DEAD_LETTERED, death=2)

    house.clock.meanwhile = None
    with armed(only_the_later_ones):
        report = house.replay(canary=0, patience=timedelta(seconds=1))
    assert report.stop is Stop.DIED_AGAIN
    assert report.fates[Fate.REPLAYED] < 900


def test_dlq_01_a_letter_of_ten_attributes_that_sqs_moved_has_a_copy_that_sqs_takes() -> None:
    house = House()
    moved_by_sqs(house, "one")
    (letter,) = house.queue.dead
    letter.attributes = {f"a{number}": {"DataType": "String", "StringValue": "x"} for number in range(10)}
    house.clock.meanwhile = None
    house.replay(watches=False)
    (copy,) = house.queue.messages.values()
    assert len(copy.attributes) <= 10
    assert house.marks()["one"]["death"] == 1
    assert sorted(house.marks()["one"]["attributes"]) == sorted(letter.attributes)


def test_dlq_03_two_letters_of_one_key_are_two_copies_to_a_fifo_queue_and_one_letter_is_one() -> None:
    house = House()
    house.send_raw(*(body(idempotency_key="one", payload={"thing": thing}) for thing in ("a", "b")))
    for _ in range(house.queue.max_receives):
        assert house.queue.receive()
        house.clock.pass_(house.queue.visibility)
    house.queue.receive()
    first, second = house.desk.look(10).dossiers
    assert first.record == second.record
    assert copy_of(first, 1).deduplication != copy_of(second, 1).deduplication
    again = house.desk.look(10).dossiers[0]
    assert copy_of(first, 1).deduplication == copy_of(again, 1).deduplication != copy_of(first, 2).deduplication


def test_i16_a_letter_of_another_time_changes_nothing_about_the_living_job_whose_key_it_has() -> None:
    house = house_with("one")
    before = house.view("one")
    house.send("one", cause=A, run_at=(START - timedelta(days=1)).isoformat())
    for _ in range(house.queue.max_receives):
        assert house.queue.receive()
        house.clock.pass_(house.queue.visibility)
    house.queue.receive()
    house.clock.meanwhile = None
    house.replay(Selection(reason="never-attempted"), watches=False)
    house.replay(Selection(reason="silent"), watches=False)
    assert (house.view("one"), len(house.queue.messages)) == (before, 1)


@pytest.mark.parametrize("replayed", [False, True])
def test_r5_2_a_letter_of_a_parent_whose_parts_are_at_work_begins_nothing(*, replayed: bool) -> None:
    """It was replayed and waits now, and its letter was not deleted then; or SQS moved a copy of its message away."""
    house = house_with("one")
    before = house.view("one")
    waiting = replace(before, status=Status.WAITING, ended_at=None)
    if replayed:
        waiting = replace(waiting, replays=1, replayed=Replayed(before.death, house.clock.now(), "me"))
    house.database.records[before.record] = waiting
    house.clock.meanwhile = None
    report = house.replay(watches=False)
    assert house.view("one") == waiting
    assert report.fates == ({Fate.FINISHED: 1} if replayed else {Fate.UNDER_WAY: 1})
    assert (len(house.queue.messages), len(house.queue.dead)) == (0, 0 if replayed else 1)
