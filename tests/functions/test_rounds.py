"""What is done every minute beside sweeping: lost jobs are sent anew, recurring jobs are asked for, each whatever befell the others."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions import outbox_sweeper
from functions.outbox_sweeper import GRACE, RESERVE, Round
from shared.backends.dynamodb.outbox import shard_of
from shared.commit import Release
from shared.errors import ClaimLost, DeclarationError, Refused, StoreUnavailable, Unavailable
from shared.job import Unique, job
from shared.job_record import LOST_AFTER, Status
from shared.outbox import SHARDS
from shared.outcome import Completed, Duplicate, Postponed
from shared.payload import Payload
from shared.rounds.counting import Counting
from shared.rounds.recurrence import LOOK_BACK, Recurrence, Recurring, latest
from shared.rounds.rescue import MOST_RESCUES, Rescue
from shared.settings import Settings
from shared.telemetry import NO_JOB_TYPE
from shared.worker import Worker
from tests.world import START, FakeClock, Note, World, body, note_job

if TYPE_CHECKING:
    from shared.outbox import Posting
    from shared.unit_of_work import UnitOfWork

MINUTE = timedelta(minutes=1)


# Rescue.


def rescue_of(world: World, workers: dict[str, str] | None = None) -> Rescue:
    routes = {"note": "notes"} if workers is None else workers
    return Rescue(
        world.database,
        world.database,
        routes,
        world.clock,
        world.telemetry,
        Counting(world.database, routes, world.clock),
    )


def rescued(world: World, **options: Any) -> list[Posting]:
    before = set(world.database.outbox)
    for shard in range(SHARDS):
        rescue_of(world, **options).rescue(shard, world.clock.now() + MINUTE)
    return [posting for name, posting in world.database.outbox.items() if name not in before]


def given_back(world: World, text: str) -> None:
    """One attempt fails, and then the message is lost."""
    world.run(text)
    world.clock.pass_(LOST_AFTER + timedelta(days=1))


def failing(first: list[int]) -> Any:
    def handler(_: Note, work: UnitOfWork) -> str:
        if first:
            first.pop()
            message = "busy"
            raise TimeoutError(message)
        return work.idempotency_key

    return handler


def test_g10_a_job_whose_message_is_gone_is_sent_anew_and_ends() -> None:
    world = World.of(failing([1]))
    given_back(world, body(job_id="j"))
    (posting,) = rescued(world)
    assert posting.worker == "notes"
    assert json.loads(posting.body)["job_id"] == "j"
    assert world.run(posting.body)[0] == Completed(2)
    assert world.telemetry.counts["job_rescued", NO_JOB_TYPE] == 1
    world.clock.pass_(timedelta(days=9))
    assert rescued(world) == []


def test_r3_5_a_job_that_is_sent_anew_stays_in_its_trace() -> None:
    world = World.of(failing([1]))
    header = f"00-{'a' * 32}-{'b' * 16}-01"
    given_back(world, body(traceparent=header))
    (posting,) = rescued(world)
    assert json.loads(posting.body)["traceparent"] == header


def test_a_job_is_sent_anew_in_its_own_version() -> None:
    world = World.of(failing([1]), version=2)
    given_back(world, body(version=2))
    (posting,) = rescued(world)
    assert world.run(posting.body)[0] == Completed(2)


def test_a_message_that_is_there_after_all_is_a_duplicate() -> None:
    world = World.of(failing([1]))
    given_back(world, body())
    (posting,) = rescued(world)
    assert world.run(body())[0] == Completed(2)
    assert world.run(posting.body)[0] == Duplicate("completed")


def test_a_rescue_that_dies_before_its_note_sends_nothing_twice() -> None:
    world = World.of(failing([1]))
    given_back(world, body())
    noted = world.database.note_rescue
    world.database.note_rescue = _unavailable
    with pytest.raises(Unavailable):
        rescued(world)
    world.database.note_rescue = noted
    assert rescued(world) == []  # the same name: it is in the outbox already
    (view,) = world.database.records.values()
    assert view.rescues == 1
    assert len(world.database.outbox) == 1


def test_what_runs_now_is_left_alone() -> None:
    world = World.of(failing([1]))
    given_back(world, body())
    (name,) = world.database.records
    view = world.database.records[name]
    world.database.records[name] = replace(view, status=Status.RUNNING, claim_until=world.clock.now() + MINUTE)
    assert rescued(world) == []
    world.clock.pass_(2 * MINUTE)
    assert len(rescued(world)) == 1  # it died there


def test_g10_what_is_lost_again_and_again_is_dead_lettered_and_counted() -> None:
    world = World.of(failing([1]))
    given_back(world, body())
    for _ in range(MOST_RESCUES):
        assert len(rescued(world)) == 1
        world.clock.pass_(LOST_AFTER)
    assert rescued(world) == []
    (view,) = world.database.records.values()
    assert (view.status, view.last_failure.reason, view.death) == (Status.DEAD_LETTERED, "message-lost", 1)
    assert world.telemetry.counts["job_lost", NO_JOB_TYPE] == 1
    assert ("job_lost", {"record": view.record, "job_type": "note", "rescues": 3}) in world.telemetry.warnings


def test_a_job_without_a_queue_to_send_to_is_dead_lettered_at_once() -> None:
    world = World.of(failing([1]))
    given_back(world, body())
    assert rescued(world, workers={}) == []
    (view,) = world.database.records.values()
    assert view.status is Status.DEAD_LETTERED


def test_a_replayed_job_that_is_lost_is_sent_anew_with_its_death() -> None:
    world = World.of(failing([1]))
    given_back(world, body())
    rescued(world, workers={})
    world.run(body(), death=1)  # a replay, handled in vain
    (name,) = world.database.records
    view = world.database.records[name]
    world.database.records[name] = replace(
        view, status=Status.RETRYING, look_at=world.clock.now(), payload='{"thing":"a"}'
    )
    (posting,) = rescued(world)
    assert json.loads(posting.attributes["tahan.dead-letter"]) == {"death": 1}


@pytest.mark.parametrize("run_at", [START.isoformat(), "2025-12-31T22:00:00.123456-01:00"])
def test_a_job_with_run_at_is_sent_anew_as_it_was_asked_for(run_at: str) -> None:
    world = World.of(failing([1]))
    asked_for = body(run_at=run_at)
    given_back(world, asked_for)
    (posting,) = rescued(world)
    assert world.run(posting.body)[0] == Completed(2)


def test_one_that_cannot_be_posted_keeps_no_other_from_its_rescue() -> None:
    world = World.of(failing([1, 1]))
    world.run(body())
    world.run(body(idempotency_key="k2"))
    world.clock.pass_(LOST_AFTER + timedelta(days=1))
    post, refusing = world.database.post, True

    def posts(posting: Posting, now: datetime) -> None:
        nonlocal refusing
        if refusing:
            refusing = False
            message = "dynamodb refuses it"
            raise Refused(message)
        post(posting, now)

    world.database.post = posts
    assert len(rescued(world)) == 1
    assert sorted(view.status for view in world.database.records.values()) == [Status.DEAD_LETTERED, Status.RETRYING]


def test_a_rescue_ends_with_its_invocation_also_where_others_are_faster() -> None:
    world = World.of(failing([1, 1, 1]))
    for key in ("k1", "k2", "k3"):
        world.run(body(idempotency_key=key))
    world.clock.pass_(LOST_AFTER + timedelta(days=1))
    looked: list[str] = []

    def taken(view: Any, *_: object) -> None:
        looked.append(view.record)
        world.clock.pass_(MINUTE)
        message = "the other sweep noted it"
        raise ClaimLost(message)

    world.database.note_rescue = taken
    shards = {shard_of(record) for record in world.database.records}
    for shard in shards:
        rescue_of(world).rescue(shard, world.clock.now())
    assert len(looked) == len(shards)


# Recurrence.


class Nothing(Payload):
    """Nothing to say."""


def sweep_job(handler: Any = None, cron: str = "*/15 * * * *") -> Any:
    @job("sweep", timeout=timedelta(seconds=10), max_latency=MINUTE, cron=cron)
    def sweep(payload: Nothing, work: UnitOfWork) -> None:
        if handler is not None:
            handler(work)

    return sweep


def recurring(world: World) -> Recurring:
    return Recurring(world.database, [Recurrence("sweep", 1, "sweeps", "*/15 * * * *")], world.clock)


def test_an_occurrence_is_posted_once_however_often_it_is_found() -> None:
    world = World(Worker("sweeps", jobs=(sweep_job(),)))
    for _ in range(31):
        recurring(world).post_due()
        world.clock.pass_(MINUTE)
    names = [f"recurring/sweep/{(START + timedelta(minutes=m)).isoformat()}" for m in (0, 15, 30)]
    assert list(world.database.outbox) == names


def test_each_occurrence_runs_and_a_second_copy_of_it_does_not() -> None:
    world = World(Worker("sweeps", jobs=(sweep_job(),)))
    for _ in range(2):
        recurring(world).post_due()
        posting = list(world.database.outbox.values())[-1]
        world.clock.pass_(MINUTE)
        assert world.run(posting.body)[0] == Completed(1)
        world.clock.pass_(14 * MINUTE)
        assert world.run(posting.body)[0] == Duplicate("completed")


def test_an_occurrence_that_comes_while_the_last_is_at_it_is_left_out() -> None:
    seen: list[object] = []

    def handler(work: UnitOfWork) -> None:
        if not seen:
            world.clock.pass_(15 * MINUTE)  # it takes longer than its interval
            recurring(world).post_due()
            seen.append(world.execute(list(world.database.outbox.values())[-1].body))
            world.clock.moment -= 15 * MINUTE - timedelta(seconds=1)

    world = World(Worker("sweeps", jobs=(sweep_job(handler),)))
    recurring(world).post_due()
    first = next(iter(world.database.outbox.values()))
    assert world.execute(first.body, left=timedelta(hours=1)) == Completed(1)
    assert isinstance(seen[0], Postponed)
    world.clock.pass_(16 * MINUTE)
    second = list(world.database.outbox.values())[-1]
    assert second.id != first.id


def test_an_occurrence_that_is_asked_for_late_is_no_older_than_its_asking() -> None:
    """The last one ended after the occurrence, and before anybody asked for it."""
    world = World(Worker("sweeps", jobs=(sweep_job(),)))
    recurring(world).post_due()
    world.clock.pass_(15 * MINUTE + timedelta(seconds=10))
    assert world.run(list(world.database.outbox.values())[-1].body)[0] == Completed(1)
    world.clock.pass_(timedelta(seconds=30))
    recurring(world).post_due()
    assert world.run(list(world.database.outbox.values())[-1].body)[0] == Completed(1)


def test_an_occurrence_that_cannot_be_posted_keeps_no_other_and_is_told() -> None:
    world = World(Worker("sweeps", jobs=(sweep_job(),)))
    post = world.database.post
    world.database.post = lambda posting, now: _unavailable() if "broken" in posting.id else post(posting, now)
    both = [Recurrence(name, 1, "sweeps", "*/15 * * * *") for name in ("broken", "sweep")]
    with pytest.raises(Unavailable):
        Recurring(world.database, both, world.clock).post_due()
    assert len(world.database.outbox) == 1


def test_an_occurrence_that_was_missed_for_an_hour_is_left_out() -> None:
    clock = FakeClock(START + LOOK_BACK + MINUTE)
    world = World(Worker("sweeps", jobs=(sweep_job(),)), clock)
    daily = Recurring(world.database, [Recurrence("sweep", 1, "sweeps", "0 0 * * *")], clock)
    daily.post_due()
    assert world.database.outbox == {}
    clock.moment -= MINUTE
    daily.post_due()
    assert len(world.database.outbox) == 1


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (datetime(2026, 1, 1, 0, 0, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, tzinfo=UTC)),
        (datetime(2026, 1, 1, 0, 14, 59, 999999, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, tzinfo=UTC)),
        (datetime(2026, 1, 1, 0, 15, tzinfo=UTC), datetime(2026, 1, 1, 0, 15, tzinfo=UTC)),
    ],
)
def test_the_latest_occurrence_is_the_one_that_has_begun(now: datetime, expected: datetime) -> None:
    assert latest("*/15 * * * *", now) == expected


@pytest.mark.parametrize("cron", ["", "* * * *", "* * * * * *", "61 * * * *", "0 0 31 2 *", "daily"])
def test_a_schedule_that_never_comes_or_cannot_be_read_is_refused_at_declaration(cron: str) -> None:
    with pytest.raises(DeclarationError, match="UTC"):
        sweep_job(cron=cron)


def test_a_recurring_job_has_an_empty_payload_and_a_key_while_it_is_active() -> None:
    assert sweep_job().unique is Unique.WHILE_ACTIVE
    with pytest.raises(DeclarationError, match="default"):
        note_job(cron="0 3 * * *")


@pytest.mark.parametrize("options", [{"open_to_clients": True}, {"cron": "0 3 * * *"}])
def test_a_fifo_queue_has_no_job_that_nobody_gives_a_group(options: dict[str, Any]) -> None:
    jobs = (sweep_job(),) if "cron" in options else (note_job(**options),)
    with pytest.raises(DeclarationError, match="group"):
        Worker("notes", jobs=jobs, fifo=True)


def test_a_leap_day_comes_and_no_hour_is_missing_on_the_day_when_clocks_are_put_forward() -> None:
    assert latest("0 0 29 2 *", datetime(2027, 3, 1, tzinfo=UTC)) == datetime(2024, 2, 29, tzinfo=UTC)
    assert latest("30 2 29 3 *", datetime(2026, 3, 29, 4, tzinfo=UTC)) == datetime(2026, 3, 29, 2, 30, tzinfo=UTC)


# Unique while active.


def test_r1_1_a_job_that_a_handler_enqueues_is_another_one_after_the_end_of_the_last() -> None:
    def handler(payload: Note, work: UnitOfWork) -> None:
        if payload.text == "asks":
            work.enqueue(note_job().message(Note(thing="b"), "refresh"))

    world = World.of(handler, unique=Unique.WHILE_ACTIVE)
    for number in range(2):
        asks = body(idempotency_key=f"asks-{number}", payload={"thing": "a", "text": "asks"})
        assert world.execute(asks) == Completed(1)
        text = list(world.database.outbox.values())[-1].body
        world.clock.pass_(MINUTE)
        assert world.execute(text) == Completed(1)
        world.clock.pass_(MINUTE)
        assert world.execute(text) == Duplicate("completed")


# The round.


def _unavailable(*_: object) -> None:
    message = "no answer"
    raise StoreUnavailable(message)


class Part:
    """A part of a round that notes that it was asked, and fails."""

    def __init__(self, name: str, asked: list[str]) -> None:
        self.name, self.asked = name, asked

    def __getattr__(self, _: str) -> Any:
        def ask(*_: object) -> None:
            self.asked.append(self.name)
            _unavailable()

        return ask


def test_each_part_of_a_round_is_tried_whatever_became_of_the_others() -> None:
    asked: list[str] = []
    parts: list[Any] = [Part(name, asked) for name in ("sweeper", "rescue", "recurring", "watchdog")]
    with pytest.raises(Unavailable):
        Round(*parts).make(START)
    assert sorted(set(asked)) == ["recurring", "rescue", "sweeper", "watchdog"]
    assert asked.count("rescue") == SHARDS


def test_a_part_that_fails_as_nobody_thought_of_stops_no_other() -> None:
    asked: list[str] = []

    class Broken:
        def __getattr__(self, _: str) -> Any:
            def ask(*_: object) -> None:
                asked.append("broken")
                raise KeyError

            return ask

    with pytest.raises(KeyError):
        Round(Broken(), Part("rescue", asked), Broken(), Broken()).make(START)  # type: ignore[arg-type]
    assert asked == ["broken"] * 3 + ["rescue"] * SHARDS


def test_a_rescue_leaves_the_invocation_time_to_end() -> None:
    told: list[datetime] = []

    class Noting:
        def sweep(self, until: datetime) -> None:
            told.append(until)

        def rescue(self, _: int, until: datetime) -> None:
            told.append(until)

        def post_due(self) -> None:
            pass

        make_round = post_due

    Round(Noting(), Noting(), Noting(), Noting()).make(START)  # type: ignore[arg-type]
    assert told == [START] + [START - RESERVE] * SHARDS


def test_the_sweepers_grace_runs_at_the_stages_pace() -> None:
    made = outbox_sweeper.connect(Settings("jobs", "outbox", pace=0.1))
    assert made.sweeper.grace == GRACE / 10


def test_the_round_is_told_by_its_settings_where_messages_go_and_what_recurs() -> None:
    settings = Settings("jobs", "outbox", routes={"sweep-up": "sweeps"}, recurring={"sweep-up": "3 */15 * * *  MON"})
    again = Settings.from_environ(settings.to_environ())
    expected = Recurrence("sweep-up", 3, "sweeps", "*/15 * * *  MON")
    assert list(outbox_sweeper.connect(again).recurring.recurrences) == [expected]
    assert expected.written == settings.recurring["sweep-up"]
    assert again.routes == {"sweep-up": "sweeps"}


def test_a_job_that_was_given_back_and_ended_is_not_watched_any_more() -> None:
    world = World.of(failing([1]))
    world.run(body())
    (view,) = world.database.records.values()
    assert view.look_at == view.not_before + LOST_AFTER
    assert isinstance(Release(START), Release)
    world.clock.pass_(timedelta(hours=1))
    world.run(body())
    (view,) = world.database.records.values()
    assert (view.status, view.look_at) == (Status.COMPLETED, None)
