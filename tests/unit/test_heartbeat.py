"""Heartbeats: claim and message are kept a few beats ahead while the job is healthy, and not a moment longer than allowed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.errors import ClaimLost, LeaseLost, Refused, StoreUnavailable, Unavailable
from shared.job_record import SYSTEM, Hold, Status, record_id
from shared.outcome import Because, Completed, Postponed
from shared.pipeline.heartbeat import Heartbeat
from shared.pipeline.keeper import IDLE, Keeper
from shared.telemetry import Silent
from shared.worker import Worker
from tests.world import THINGS, Context, FakeClock, Note, World, acquired, body, event, note_job, record_of

if TYPE_CHECKING:
    from datetime import datetime

    from shared.delivery import Delivery
    from shared.runtime import Runtime
    from shared.unit_of_work import UnitOfWork

BEAT = timedelta(seconds=10)
RECORD = record_id(SYSTEM, "note", "k1")
HOLD = Hold("r", "t")


@dataclass
class Stores:
    """Claims and messages that answer as told."""

    claim_error: Exception | None = None
    hide_error: Exception | None = None
    said: list[tuple[str, timedelta]] = field(default_factory=list)

    def prolong(self, hold: Hold, until: datetime, now: datetime) -> None:
        self.said.append(("claim", until - now))
        if self.claim_error is not None:
            raise self.claim_error

    def hide(self, delivery: Delivery, after: timedelta) -> None:
        self.said.append(("message", after))
        if self.hide_error is not None:
            raise self.hide_error


@dataclass
class Case:
    """A heartbeat at time 0."""

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.stores = Stores()
        self.telemetry = Silent()
        delivery = World.of().delivery(body())
        self.heart = Heartbeat(delivery, BEAT, self.stores, self.stores, self.clock, self.telemetry)

    def begin(self, deadline: timedelta = timedelta(hours=1)) -> Heartbeat:
        """The claim is granted, after the first beat."""
        self.heart.renew()
        self.stores.said.clear()
        self.heart.begin(HOLD, self.clock.now() + deadline)
        return self.heart

    def after(self, seconds: float) -> float:
        """Let time pass and beat if it is time to."""
        self.clock.pass_(timedelta(seconds=seconds))
        return self.heart.renew()


def test_the_message_is_hidden_three_beats_ahead_from_its_receipt_also_before_there_is_a_claim() -> None:
    case = Case()
    assert case.after(0) == 10
    assert case.after(4) == 6
    assert case.after(6) == 10
    assert case.stores.said == [("message", 3 * BEAT)] * 2


def test_each_beat_prolongs_the_claim_and_then_the_message() -> None:
    case = Case()
    heart = case.begin()
    for _ in range(5):
        case.after(10)
    assert case.stores.said == [("claim", 3 * BEAT), ("message", 3 * BEAT)] * 5
    heart.check()


def test_the_first_beat_hides_the_message_first_also_where_the_claim_was_quicker() -> None:
    case = Case()
    case.heart.begin(HOLD, case.clock.now() + timedelta(hours=1))
    case.stores.hide_error = Unavailable("no answer", dependency="sqs")
    assert case.after(0) == 2.5
    case.stores.hide_error = None
    case.after(2.5)
    case.after(10)
    told = [what for what, _ in case.stores.said]
    assert told == ["message", "message", "claim", "claim", "message"]


def test_a_claim_that_another_took_over_is_told_before_the_next_step_and_the_message_is_left_alone() -> None:
    case = Case()
    heart = case.begin()
    case.stores.claim_error = ClaimLost()
    assert case.after(10) == IDLE
    assert case.stores.said == [("claim", 3 * BEAT)]
    with pytest.raises(ClaimLost):
        heart.check()


def test_bat_16_a_message_that_may_not_be_hidden_any_longer_stops_the_work() -> None:
    case = Case()
    heart = case.begin()
    case.stores.hide_error = Refused("the receipt is stale")
    case.after(10)
    with pytest.raises(LeaseLost):
        heart.check()
    assert case.telemetry.warnings[0][0] == "heartbeat_stopped"
    assert case.telemetry.warnings[0][1]["because"] == "message"


def test_a_beat_without_an_answer_is_tried_again_soon_and_two_may_fail() -> None:
    case = Case()
    heart = case.begin()
    case.stores.claim_error = StoreUnavailable("no answer")
    assert case.after(10) == 2.5
    for _ in range(6):
        case.after(2.5)
    heart.check()
    case.stores.claim_error = None
    case.after(2.5)
    case.clock.pass_(timedelta(seconds=29))
    heart.check()


def test_a_claim_that_could_not_be_prolonged_in_time_is_lost_for_good() -> None:
    case = Case()
    heart = case.begin()
    case.clock.pass_(timedelta(seconds=30))  # frozen: nothing was asked
    with pytest.raises(LeaseLost):
        heart.check()
    case.stores.claim_error = StoreUnavailable("no answer")
    assert Keeper(Silent()).renew_due() == IDLE
    assert case.after(1) == IDLE


def test_nothing_is_prolonged_after_the_jobs_deadline() -> None:
    case = Case()
    heart = case.begin(timedelta(seconds=15))
    case.after(10)
    said = len(case.stores.said)
    assert case.after(10) == IDLE
    assert len(case.stores.said) == said
    case.clock.pass_(timedelta(minutes=5))
    heart.check()  # the deadline itself is told by the unit of work


def test_bat_16_the_heart_stops_at_sqs_12_hours() -> None:
    case = Case()
    heart = case.begin(timedelta(hours=20))
    beats = 0
    while case.after(10) != IDLE:
        beats += 1
    assert timedelta(hours=12) - 4 * BEAT <= beats * BEAT <= timedelta(hours=12) - 3 * BEAT
    assert all(after <= 3 * BEAT for _, after in case.stores.said)
    with pytest.raises(LeaseLost):
        heart.check()


def test_a_renewal_that_raises_what_nobody_thought_of_loses_its_holder_and_spares_the_others() -> None:
    case = Case()
    keeper = Keeper(Silent())
    keeper.keep(case.begin())
    case.stores.claim_error = RuntimeError("a bug")
    other = Case()
    keeper.keep(other.begin())
    for each in (case, other):
        each.clock.pass_(BEAT)
    keeper.renew_due()
    with pytest.raises(LeaseLost):
        case.heart.check()
    other.heart.check()
    assert len(other.stores.said) == 2


def test_i31_a_claim_counts_from_before_it_was_asked_for() -> None:
    case = Case()
    assert case.heart.ask() == 3 * BEAT
    case.clock.pass_(timedelta(seconds=25))  # the answer was long in coming
    heart = case.begin()
    case.clock.pass_(timedelta(seconds=4))
    heart.check()
    case.clock.pass_(timedelta(seconds=1))
    with pytest.raises(LeaseLost):
        heart.check()


def test_i33_a_heart_that_stood_still_with_its_monotonic_clock_is_lost_by_the_wall_clock() -> None:
    case = Case()
    heart = case.begin()
    case.after(10)
    heart.check()
    case.clock.monotonic = lambda: 10.0  # type: ignore[method-assign]
    case.clock.pass_(timedelta(seconds=30))
    with pytest.raises(LeaseLost):
        heart.check()


def test_a_beat_that_is_on_its_way_is_waited_for_and_hides_nothing_any_more() -> None:
    case = Case()
    heart = case.begin()
    asked, answer = threading.Event(), threading.Event()
    prolong = case.stores.prolong

    def slow(hold: Hold, until: datetime, now: datetime) -> None:
        prolong(hold, until, now)
        asked.set()
        assert answer.wait(10)

    case.stores.prolong = slow  # type: ignore[method-assign]
    case.clock.pass_(BEAT)
    sleep = case.clock.sleep

    def while_waiting(seconds: float) -> None:
        sleep(seconds)
        answer.set()
        beat.join(10)

    case.clock.sleep = while_waiting  # type: ignore[method-assign]
    beat = threading.Thread(target=heart.renew)
    beat.start()
    assert asked.wait(10)
    heart.stop()
    assert not beat.is_alive()  # it waited for it
    assert case.stores.said == [("claim", 3 * BEAT)]
    case.after(10)
    assert case.stores.said == [("claim", 3 * BEAT)]


def test_a_beat_without_an_answer_is_waited_for_a_second_and_no_longer() -> None:
    case = Case()
    heart = case.begin()
    asked, answer = threading.Event(), threading.Event()

    def hanging(hold: Hold, until: datetime, now: datetime) -> None:
        asked.set()
        assert answer.wait(30)

    case.stores.prolong = hanging  # type: ignore[method-assign]
    case.clock.pass_(BEAT)
    beat = threading.Thread(target=heart.renew)
    beat.start()
    assert asked.wait(10)
    heart.stop()
    assert 0.9 <= sum(case.clock.slept) <= 1.1
    answer.set()
    beat.join(10)
    assert case.stores.said == []


def test_an_end_that_a_beat_finds_is_no_loss_to_tell_of() -> None:
    case = Case()
    heart = case.begin()
    case.stores.claim_error = ClaimLost()
    prolong = case.stores.prolong

    def ended(hold: Hold, until: datetime, now: datetime) -> None:
        object.__setattr__(heart, "stopped", True)  # the job ended while this beat was on its way
        prolong(hold, until, now)

    case.stores.prolong = ended  # type: ignore[method-assign]
    case.after(10)
    assert case.telemetry.warnings == []


# In the pipeline.


@dataclass
class Beating(World):
    """A world whose keeper is driven by hand."""

    made: Runtime | None = None

    @property
    def runtime(self) -> Runtime:
        if self.made is None:
            self.made = super().runtime
        return self.made

    def work_for(self, seconds: float) -> None:
        """What a handler does that takes long."""
        for _ in range(int(seconds)):
            self.clock.pass_(timedelta(seconds=1))
            self.runtime.keeper.renew_due()


def beating(handler: Any, **options: Any) -> Beating:
    declared = {"heartbeat": BEAT, "timeout": timedelta(minutes=5), "max_latency": timedelta(hours=1), **options}
    return Beating(Worker("notes", jobs=(note_job(handler, **declared),), batch_size=1))


def run(world: Beating) -> Any:
    until = world.clock.now() + world.worker.function_timeout
    return world.runtime.execution.execute(world.delivery(body()), until)


def test_a_beating_job_holds_its_claim_only_three_beats_ahead() -> None:
    seen: list[Any] = []

    def handler(payload: Note, work: UnitOfWork) -> None:
        view = world.database.view(RECORD)
        seen.append((view.claim_until - world.clock.now(), work.deadline - world.clock.now()))
        world.work_for(100)
        view = world.database.view(RECORD)
        seen.append(view.claim_until - world.clock.now())
        work.read(THINGS, "a")

    world = beating(handler)
    assert run(world) == Completed(1)
    assert seen[0] == (3 * BEAT, timedelta(minutes=5))
    assert 2 * BEAT <= seen[1] <= 3 * BEAT
    assert world.queue.hidden["m1"] == 3 * BEAT


def test_a_crashed_beating_job_is_taken_over_after_three_beats_and_its_lock_is_free_then() -> None:
    class Crash(BaseException):
        pass

    def handler(payload: Note, work: UnitOfWork) -> None:
        world.work_for(60)
        if work.attempt == 1:
            raise Crash

    world = beating(handler)
    until = world.clock.now() + world.worker.function_timeout
    execution = world.runtime.execution
    ahead = execution.preparation.together([world.delivery(body())], {"m1"}, until)["m1"]
    with pytest.raises(Crash):
        execution.execute(ahead.run.delivery, until, ahead)
    want = ahead.locks.wants[0]
    acquired(world.cache, want.key, want.token, want.ttl)  # the dead give nothing back
    early = run(world)
    assert isinstance(early, Postponed)
    assert early.because is Because.CONTENDED
    world.clock.pass_(3 * BEAT)
    assert run(world) == Completed(2)


def test_a_beating_job_whose_claim_went_to_another_changes_nothing_and_stops() -> None:
    reached: list[Any] = []

    def handler(payload: Note, work: UnitOfWork) -> None:
        item = work.create(THINGS, id="a", text="mine")
        view = world.database.records[RECORD]
        world.database.records[RECORD] = replace(view, token="another", attempts=2)
        world.work_for(11)
        work.read(THINGS, "b")
        reached.append(item)

    world = beating(handler)
    outcome = run(world)
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.CLAIM_LOST
    assert reached == []
    assert world.thing("a") is None
    assert world.database.view(RECORD).token == "another"


def test_the_heart_stands_still_before_the_outcome_is_settled() -> None:
    world = beating(None)
    assert run(world) == Completed(1)
    world.queue.hidden.clear()
    world.work_for(60)
    assert world.queue.hidden == {}
    assert world.database.view(RECORD).status is Status.COMPLETED


def test_a_beat_that_is_late_hides_nothing_behind_what_settlement_said() -> None:
    world = beating(None)
    acquired(world.cache, "thing/a", "another", timedelta(hours=1))
    hearts: list[Heartbeat] = []
    keep = world.runtime.keeper.keep

    def noted(renewable: Any) -> None:
        hearts.append(renewable)
        keep(renewable)

    world.runtime.keeper.keep = noted  # type: ignore[method-assign]
    outcome = run(world)
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.CONTENDED
    (heart,) = hearts
    world.queue.hidden.clear()
    world.clock.pass_(BEAT)
    heart.renew()  # the keeper looked at what it kept before the heart was let go of
    assert world.queue.hidden == {}


def test_a_batch_beats_for_the_messages_that_still_wait_for_their_turn() -> None:
    class Beats(Keeper):
        """Beats once whenever something is kept, instead of by a thread."""

        def keep(self, renewable: Any) -> None:
            super().keep(renewable)
            if isinstance(renewable, Heartbeat):
                renewable.renew()

    job = note_job(heartbeat=BEAT, timeout=timedelta(minutes=1), max_latency=timedelta(hours=1))
    world = World(Worker("notes", jobs=(job,), batch_size=3, batch_concurrency=1))
    runtime = world.runtime
    keeper = Beats(Silent())
    object.__setattr__(runtime.execution.preparation, "keeper", keeper)
    batch = [world.delivery(body(idempotency_key=f"k{number}")) for number in range(3)]
    ahead = runtime.execution.preparation.together(batch, {"m1"}, world.clock.now() + timedelta(minutes=5))
    assert world.queue.hidden == {f"m{number}": 3 * BEAT for number in (1, 2, 3)}
    assert [len(each.locks.leases) for each in ahead.values()] == [1, 0, 0]


def test_a_job_without_a_heartbeat_leaves_its_message_and_its_claim_alone() -> None:
    world = World.of()
    assert world.handle(event(record_of(body())), Context()) == {"batchItemFailures": []}
    assert world.queue.hidden == {}


def test_a_claim_that_is_granted_during_a_beat_keeps_its_own_end() -> None:
    """The beat began when there was no claim, and prolonged none."""
    case = Case()
    case.heart.ask()
    hide = case.stores.hide

    def granted_meanwhile(delivery: Delivery, after: timedelta) -> None:
        case.clock.pass_(timedelta(seconds=5))
        case.heart.begin(HOLD, case.clock.now() + timedelta(hours=1))
        hide(delivery, after)

    case.stores.hide = granted_meanwhile  # type: ignore[method-assign]
    case.clock.pass_(timedelta(seconds=5))
    case.heart.renew()
    assert [what for what, _ in case.stores.said] == ["message"]
    case.clock.pass_(timedelta(seconds=19))
    case.heart.check()
    case.clock.pass_(timedelta(seconds=1))
    with pytest.raises(LeaseLost):
        case.heart.check()
