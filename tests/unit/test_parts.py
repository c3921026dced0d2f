"""Jobs that are split: the parent ends once, after its last part, whatever order the ends come in and whoever dies."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import Field

from shared.backends.memory.operator_records import MemoryOperatorRecords
from shared.desk.operator_records import Ending
from shared.errors import DeadLetter, DeclarationError, Refused, StoreUnavailable, Unavailable
from shared.failpoints import Failpoint, armed
from shared.intake.operation import OperationStatus, operation_of
from shared.intake.request import Intake
from shared.job import JobTypes, job
from shared.job_record import SYSTEM, JobView, Status, record_id
from shared.outbox import SHARDS
from shared.outcome import Because, Cancelled, Completed, DeadLettered, Failed, Postponed, Retried, Waiting
from shared.parts import PARTS_AT_ONCE, PartState, Tally
from shared.payload import Payload
from shared.retry import Retry
from shared.rounds.counting import LOOK_EVERY, Counting
from shared.rounds.rescue import Rescue
from shared.work.splitting import PartResult
from shared.worker import Worker
from tests.dying import Killed, dying
from tests.world import START, THINGS, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.outcome import Outcome
    from shared.unit_of_work import UnitOfWork

RECORD = record_id(SYSTEM, "whole", "k1")
BODY = json.dumps({"job_type": "whole", "idempotency_key": "k1", "payload": {"parts": 5}})


class Whole(Payload):
    """Do so many parts."""

    parts: int
    at_once: int = 2


class Piece(Payload):
    """Do one part."""

    number: int


TIMES: dict[str, Any] = {"timeout": timedelta(seconds=10), "max_latency": timedelta(minutes=5)}


@dataclass
class Family:
    """A worker that splits, its stores, and the messages between them."""

    does: Callable[[int, UnitOfWork], object] = lambda number, work: {"did": number}
    relayed: set[str] = field(default_factory=set)
    counted: int = 0
    woken: int = 0

    def __post_init__(self) -> None:
        retry = Retry(max_attempts=3, base=timedelta(seconds=10), cap=timedelta(minutes=1))

        @job("piece", retry=retry, uses=(THINGS.read_write,), **TIMES)
        def piece(payload: Piece, work: UnitOfWork) -> object:
            done = self.does(payload.number, work)
            if not isinstance(done, Failed):
                work.create(THINGS, id=f"piece/{payload.number}")
            return done

        @job("whole", retry=retry, parts=(piece,), uses=(THINGS.read_write,), open_to_clients=True, **TIMES)
        def whole(payload: Whole, work: UnitOfWork) -> object:
            done = 0 if work.last_checkpoint is None else work.last_checkpoint["split"]
            while done < payload.parts:
                for number in range(done, min(done + payload.at_once, payload.parts)):
                    work.split(piece, Piece(number=number))
                done = min(done + payload.at_once, payload.parts)
                work.checkpoint({"split": done}, needs=timedelta(seconds=1))
            tally = work.await_parts()
            self.woken += 1
            work.create(THINGS, id="whole")
            return {"succeeded": tally.succeeded, "ended": tally.ended}

        self.piece, self.whole = piece, whole
        self.world = World(Worker("notes", jobs=(whole, piece)))
        self.clock = self.world.clock
        self.counting = Counting(self.world.database, {"whole": "notes", "piece": "notes"}, self.clock)

    @property
    def database(self) -> Any:
        return self.world.database

    @property
    def parent(self) -> JobView:
        view: JobView = self.database.view(RECORD)
        return view

    def messages(self) -> list[str]:
        """What the relay sends now."""
        fresh = [posting for posting in self.database.outbox.values() if posting.id not in self.relayed]
        self.relayed |= {posting.id for posting in fresh}
        return [posting.body for posting in fresh]

    def count(self, counting: Counting | None = None) -> None:
        """Bring what the stream holds, until it is counted."""
        ends = self.database.records.ends[self.counted :]
        if ends:
            (counting or self.counting).count(ends)
        self.counted += len(ends)

    def run_all(self, bodies: list[str]) -> list[Outcome]:
        """Run messages and what they cause, until nothing is left; the stream comes last, and causes more."""
        outcomes: list[Outcome] = []
        waiting = list(bodies)
        for _ in range(200):
            if not waiting:
                self.count()
                waiting = self.messages()
            if not waiting:
                return outcomes
            body = waiting.pop(0)
            outcome, acknowledged = self.world.run(body)
            outcomes.append(outcome)
            if not acknowledged:
                waiting.append(body)
                self.clock.pass_(timedelta(minutes=2))
            waiting += self.messages()
        pytest.fail("not at rest")

    def things(self) -> dict[str, int]:
        return {key[0]: stored.version for (_, key), stored in self.database.items.items()}

    def look(self) -> None:
        """The sweeper's round, when it is time to look."""
        self.clock.pass_(LOOK_EVERY)
        self.world.rescue_all("whole")


EVERYTHING = {**{f"piece/{number}": 1 for number in range(5)}, "whole": 1}


def test_r5_2_a_job_ends_after_its_last_part_and_once() -> None:
    family = Family()
    outcomes = family.run_all([BODY])
    assert outcomes == [Waiting(), *[Completed(1)] * 5, Completed(1)]
    assert (family.things(), family.woken) == (EVERYTHING, 1)
    view = family.parent
    assert (view.status, json.loads(view.result or "")) == (Status.COMPLETED, {"succeeded": 5, "ended": 5})
    assert view.tally is not None
    assert (view.tally.total, view.tally.succeeded) == (5, 5)
    assert family.run_all([BODY]) == [family.world.run(BODY)[0]]  # a late copy


def test_a_job_without_parts_waits_for_nobody() -> None:
    family = Family()
    body = json.dumps({"job_type": "whole", "idempotency_key": "k1", "payload": {"parts": 0}})
    assert family.run_all([body]) == [Completed(1)]
    assert family.things() == {"whole": 1}


def test_a_part_that_fails_is_retried_by_itself_and_one_that_cannot_is_counted() -> None:
    def does(number: int, work: UnitOfWork) -> object:
        if number == 1 and work.attempt < 3:
            raise TimeoutError
        if number == 2:
            raise DeadLetter("hopeless")
        return Failed("not_wanted") if number == 3 else None

    family = Family(does)
    outcomes = family.run_all([BODY])
    assert sum(isinstance(outcome, Retried) for outcome in outcomes) == 2
    assert len(family.world.queue.dead) == 1
    assert family.parent.status is Status.COMPLETED
    tally = family.parent.tally
    assert tally is not None
    assert (tally.succeeded, tally.failed, tally.dead_lettered, tally.ended) == (3, 1, 1, 5)
    assert json.loads(family.parent.result or "") == {"succeeded": 3, "ended": 5}


def test_a_replayed_part_updates_the_parent_that_has_ended_and_leaves_its_result() -> None:
    dead = iter([True])

    def does(number: int, work: UnitOfWork) -> object:
        if number == 2 and next(dead, False):
            raise DeadLetter("hopeless")
        return None

    family = Family(does)
    family.run_all([BODY])
    before = family.parent
    ((delivery, _),) = family.world.queue.dead
    outcome, _ = family.world.run(delivery.body, death=1)
    family.count()
    assert outcome == Completed(1)
    after = family.parent
    assert after.tally is not None
    assert (after.tally.succeeded, after.tally.dead_lettered) == (5, 0)
    assert (after.status, after.result, family.woken) == (Status.COMPLETED, before.result, 1)
    assert family.messages() == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_in_whatever_order_the_ends_come_the_last_one_wakes_the_parent(order: tuple[int, ...]) -> None:
    family = Family()
    body = json.dumps({"job_type": "whole", "idempotency_key": "k1", "payload": {"parts": 3}})
    family.world.run(body)
    bodies = family.messages()
    for place, number in enumerate(order):
        family.world.run(bodies[number])
        family.count()
        family.count(family.counting)
        assert len(family.messages()) == (place == 2)


def test_ends_that_come_before_the_parent_waits_are_not_missed() -> None:
    family = Family()
    passed: list[Failpoint] = []

    def meanwhile(point: Failpoint) -> None:
        passed.append(point)
        if point is Failpoint.CHECKPOINTED and passed.count(point) == 3:  # all is split, and nothing waits yet
            with armed(lambda _: None):
                for body in family.messages():
                    assert family.world.run(body)[0] == Completed(1)
                family.count()

    with armed(meanwhile):
        assert family.world.run(BODY)[0] == Completed(1)
    assert family.things() == EVERYTHING


def test_ends_that_come_between_the_last_look_and_the_wait_are_not_missed() -> None:
    family = Family()
    tally = family.database.tally

    def late(split: Any) -> Tally:
        found: Tally = tally(split)
        if not late_once:
            late_once.append(True)
            for body in family.messages():
                family.world.run(body)
            family.count()
        return found

    late_once: list[bool] = []
    family.database.tally = late
    assert family.world.run(BODY)[0] == Waiting()
    assert len(family.messages()) == 1  # it looked again once it waited


@pytest.mark.parametrize(
    "point", [Failpoint.ENDS_RECEIVED, Failpoint.ENDS_NOTED, Failpoint.TALLY_TOLD, Failpoint.WOKEN]
)
@pytest.mark.parametrize("after", range(3))
def test_whoever_counts_may_die_anywhere_and_the_parent_ends_once(point: Failpoint, after: int) -> None:
    family = Family()
    family.world.run(BODY)
    bodies, deaths = family.messages(), 0
    with dying(point, after + 1):
        for body in bodies:
            family.world.run(body)
            try:
                family.count()
            except Killed:
                deaths += 1  # the stream brings the batch again
                family.count()
    assert deaths == (1 if point is not Failpoint.WOKEN or after == 0 else 0)
    assert family.run_all(family.messages())[-1] == Completed(1)
    assert (family.things(), family.woken) == (EVERYTHING, 1)


@pytest.mark.parametrize("point", [Failpoint.CHECKPOINTED, Failpoint.WAITING])
@pytest.mark.parametrize("after", range(3))
def test_whoever_splits_may_die_anywhere_and_no_part_is_split_off_twice(point: Failpoint, after: int) -> None:
    family = Family()
    with dying(point, after + 1):
        if point is Failpoint.CHECKPOINTED or after == 0:
            with pytest.raises(Killed):
                family.world.run(BODY)
    family.clock.pass_(timedelta(minutes=2))
    family.run_all([BODY])
    assert (family.things(), family.woken) == (EVERYTHING, 1)
    assert family.parent.split is not None
    assert family.parent.split.parts == 5


def test_what_the_stream_has_lost_is_found_by_the_sweeper() -> None:
    family = Family()
    family.world.run(BODY)
    for body in family.messages():
        family.world.run(body)
    family.database.records.ends.clear()  # nobody ever hears of them
    family.count()
    assert family.messages() == []
    family.look()
    (message,) = family.messages()
    assert family.world.run(message)[0] == Completed(1)
    assert (family.things(), family.woken) == (EVERYTHING, 1)


def test_a_parent_whose_parts_are_under_way_is_looked_at_again_and_again() -> None:
    family = Family()
    family.world.run(BODY)
    bodies = family.messages()
    for _ in range(3):
        family.look()
        assert family.parent.look_at == family.clock.now() + LOOK_EVERY
        assert (family.parent.status, family.messages()) == (Status.WAITING, [])
    family.run_all(bodies)
    assert family.woken == 1


def test_a_parent_that_nobody_can_wake_is_given_up_and_seen() -> None:
    family = Family()
    family.world.run(BODY)
    family.clock.pass_(LOOK_EVERY)
    rescue = Rescue(family.database, family.database, {}, family.clock, family.world.telemetry, family.counting)
    for shard in range(SHARDS):
        rescue.rescue(shard, family.clock.now() + timedelta(minutes=1))
    assert family.parent.status is Status.DEAD_LETTERED


def test_a_parent_waits_however_many_receives_and_spends_no_attempt() -> None:
    family = Family()
    assert family.world.run(BODY) == (Waiting(), True)
    assert family.parent.attempts == 0
    copy, acknowledged = family.world.run(BODY)
    assert acknowledged
    assert getattr(copy, "status", None) == "waiting"


def test_a_count_that_gets_no_answer_is_brought_again() -> None:
    family = Family()
    family.world.run(BODY)
    for body in family.messages():
        family.world.run(body)
    wake = family.database.wake

    def gone(*_: object) -> None:
        raise StoreUnavailable("no answer")

    family.database.wake = gone
    with pytest.raises(Unavailable):
        family.count()
    family.database.wake = wake
    family.count()
    assert family.run_all(family.messages())[-1] == Completed(1)


def test_the_store_that_is_away_when_a_job_begins_to_wait_costs_no_attempt_and_no_part() -> None:
    family = Family()
    wait = family.database.wait

    def gone(*_: object) -> None:
        raise StoreUnavailable("no answer")

    family.database.wait = gone
    outcome, _ = family.world.run(BODY)
    assert isinstance(outcome, Postponed)
    assert (outcome.because, family.parent.attempts) == (Because.STORE_UNAVAILABLE, 0)
    family.database.wait = wait
    family.clock.pass_(timedelta(minutes=2))
    family.run_all([BODY])
    assert (family.things(), family.woken) == (EVERYTHING, 1)


def test_an_end_that_comes_while_the_parent_ends_is_told_too() -> None:
    """A dead part is replayed and done at the very moment: who counts it finds the parent running, and tells nobody."""
    family = Family(lambda number, work: (_ for _ in ()).throw(DeadLetter("rotten")) if dead and number == 1 else None)
    dead = [True]
    family.world.run(BODY)
    for body in family.messages():
        family.world.run(body)
    family.count()
    (woken,) = family.messages()
    ((delivery, _),) = family.world.queue.dead

    def meanwhile(point: Failpoint) -> None:
        if point is Failpoint.HANDLED and dead:
            dead.clear()
            with armed(lambda _: None):
                assert family.world.run(delivery.body, death=1)[0] == Completed(1)
                family.count()

    with armed(meanwhile):
        assert family.world.run(woken)[0] == Completed(1)
    tally = family.parent.tally
    assert tally is not None
    assert (tally.succeeded, tally.dead_lettered) == (5, 0)


# Cancelling.


@dataclass
class Owned:
    """A parent that a client asked for."""

    family: Family = field(default_factory=Family)

    def __post_init__(self) -> None:
        database, world = self.family.database, self.family.world
        types = JobTypes.of(self.family.whole)
        self.intake = Intake(types, {"whole": "notes"}, database, database, world.runtime.execution.here)
        self.operation = self.intake.accept("ann", "whole", "k1", '{"parts":5}').operation.operation_id
        self.first = self.family.messages()

    @property
    def view(self) -> JobView:
        view: JobView = next(
            view for view in self.family.database.records.values() if view.names["job_type"] == "whole"
        )
        return view

    def cancel(self) -> OperationStatus:
        operation = self.intake.cancel("ann", self.operation)
        assert operation is not None
        assert operation.cancelling is (operation.status is not OperationStatus.CANCELLED)
        return operation.status


def test_cancelling_a_parent_stops_the_parts_that_have_not_begun() -> None:
    owned = Owned()
    family = owned.family
    assert family.world.run(owned.first[0]) == (Waiting(), True)
    bodies = family.messages()
    family.world.run(bodies[0])
    assert owned.cancel() is OperationStatus.RUNNING
    outcomes = family.run_all(bodies[1:])
    assert outcomes == [Cancelled()] * 5  # four parts, and the parent after them
    assert family.things() == {"piece/0": 1}
    view = owned.view
    assert (view.status, family.woken) == (Status.CANCELLED, 0)
    assert view.tally is not None
    assert (view.tally.succeeded, view.tally.cancelled) == (1, 4)
    assert operation_of(view, START).status is OperationStatus.CANCELLED


def test_a_part_that_has_begun_ends_by_itself_when_its_parent_is_cancelled() -> None:
    failing = iter([TimeoutError()])

    def does(number: int, work: UnitOfWork) -> object:
        if number == 0 and (error := next(failing, None)) is not None:
            raise error
        return None

    owned = Owned(Family(does))
    family = owned.family
    family.world.run(owned.first[0])
    bodies = family.messages()
    assert isinstance(family.world.run(bodies[0])[0], Retried)
    owned.cancel()
    family.clock.pass_(timedelta(minutes=2))
    family.run_all(bodies)
    assert family.things() == {"piece/0": 1}
    assert owned.view.status is Status.CANCELLED


def test_cancelling_a_parent_that_is_being_split_ends_the_splitting() -> None:
    owned = Owned()
    family = owned.family
    passed: list[Failpoint] = []

    def meanwhile(point: Failpoint) -> None:
        passed.append(point)
        if point is Failpoint.CHECKPOINTED and passed.count(point) == 1:
            assert owned.cancel() is OperationStatus.RUNNING

    with armed(meanwhile):
        assert family.world.run(owned.first[0])[0] == Waiting()
    # The step that was under way is written, with its two parts, and no other begins.
    assert family.run_all(family.messages()) == [Cancelled()] * 5
    assert (family.things(), owned.view.status) == ({}, Status.CANCELLED)


def test_cancelling_a_parent_that_is_between_two_attempts_ends_it_at_the_next() -> None:
    owned = Owned()
    family = owned.family
    with dying(Failpoint.CHECKPOINTED), pytest.raises(Killed):
        family.world.run(owned.first[0])
    owned.cancel()
    family.clock.pass_(timedelta(minutes=2))
    assert family.world.run(owned.first[0])[0] == Waiting()
    assert family.run_all(family.messages()) == [Cancelled()] * 3
    assert owned.view.status is Status.CANCELLED


def test_parts_of_a_parent_that_people_have_ended_do_not_begin() -> None:
    owned = Owned()
    family = owned.family
    family.world.run(owned.first[0])
    bodies = family.messages()
    desk = MemoryOperatorRecords(family.database, family.clock)
    desk.end(owned.view, Ending(Status.CANCELLED), family.clock.now())
    assert family.run_all(bodies) == [Cancelled()] * 5
    assert family.things() == {}
    tally = owned.view.tally
    assert tally is not None
    assert (owned.view.status, tally.cancelled) == (Status.CANCELLED, 5)


# What is refused.


def test_parts_are_declared_and_of_the_same_worker_and_of_no_fifo_queue() -> None:
    family = Family()
    with pytest.raises(DeclarationError, match="is split into piece, which is not among its jobs: add it"):
        Worker("notes", jobs=(family.whole,))
    with pytest.raises(DeclarationError, match="a FIFO queue would run them one after another"):
        Worker("notes", jobs=(family.whole, family.piece), fifo=True)
    assert Worker("notes", jobs=(family.whole, family.piece)).at_pace(0.1).jobs


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda family, work: [work.split(family.piece, Piece(number=n)) for n in range(50)], "49 parts are staged"),
        (
            lambda family, work: (work.split(family.piece, Piece(number=1)), work.await_parts()),
            "take a checkpoint first",
        ),
        (lambda family, work: (work.create(THINGS, id="x"), work.await_parts()), "take a checkpoint first"),
        (lambda family, work: (work.invalidate("x"), work.await_parts()), "take a checkpoint first"),
        (
            lambda family, work: (
                [work.split(family.piece, Piece(number=n)) for n in range(49)],
                [work.create(THINGS, id=f"x{n}") for n in range(2)],
                work.checkpoint({}),
            ),
            r"2 items \+ 0 messages \+ 0 settled jobs \+ 99 of 49 parts \+ the job record = 102",
        ),
    ],
)
def test_what_would_be_lost_or_does_not_fit_is_refused(act: Any, told: str) -> None:
    refused: list[BaseException] = []
    family = Family()

    @job("whole", parts=(family.piece,), uses=(THINGS.read_write,), **TIMES)
    def whole(payload: Whole, work: UnitOfWork) -> None:
        with pytest.raises(Refused, match=told) as caught:
            act(family, work)
        refused.append(caught.value)

    world = World(Worker("notes", jobs=(whole, family.piece)))
    world.run(BODY)
    assert len(refused) == 1


def test_there_is_room_for_parts_beside_what_else_is_staged() -> None:
    rooms: list[int] = []
    family = Family()

    @job("whole", parts=(family.piece,), uses=(THINGS.read_write,), **TIMES)
    def whole(payload: Whole, work: UnitOfWork) -> None:
        rooms.append(work.room_for_parts)
        for number in range(4):
            work.create(THINGS, id=f"x{number}")
        rooms.append(work.room_for_parts)
        while work.room_for_parts:
            work.split(family.piece, Piece(number=work.room_for_parts))
        work.checkpoint({})

    world = World(Worker("notes", jobs=(whole, family.piece)))
    assert world.run(BODY)[0] == Completed(1)
    assert rooms == [PARTS_AT_ONCE, PARTS_AT_ONCE - 2]


def test_a_type_that_is_not_declared_is_no_part() -> None:
    family = Family()
    caught: list[str] = []

    @job("whole", uses=(THINGS.read_write,), **TIMES)
    def whole(payload: Whole, work: UnitOfWork) -> None:
        try:
            work.split(family.piece, Piece(number=1))
        except DeclarationError as error:
            caught.append(str(error))
            raise

    outcome = World(Worker("notes", jobs=(whole, family.piece))).execute(BODY)
    assert isinstance(outcome, DeadLettered | Retried)
    assert caught == ["The job is split into 'piece' without declaring it: add it to `parts`."]


def test_the_results_of_parts_are_read_whatever_became_of_each() -> None:
    results: list[PartResult] = []

    def does(number: int, work: UnitOfWork) -> object:
        if number == 2:
            raise DeadLetter("hopeless")
        return {"did": number}

    family = Family(does)

    @job("whole", parts=(family.piece,), uses=(THINGS.read_write,), **TIMES)
    def whole(payload: Whole, work: UnitOfWork) -> None:
        if work.last_checkpoint is None:
            for number in range(3):
                work.split(family.piece, Piece(number=number))
            work.checkpoint({}, needs=timedelta(0))
        work.await_parts()
        results.extend(work.part_results())

    family.world = World(Worker("notes", jobs=(whole, family.piece)))
    family.counting = Counting(family.world.database, {"whole": "notes"}, family.world.clock)
    family.clock = family.world.clock
    family.run_all([BODY])
    assert sorted(results, key=lambda each: each.number) == [
        PartResult(0, Status.COMPLETED, {"did": 0}),
        PartResult(1, Status.COMPLETED, {"did": 1}),
        PartResult(2, Status.DEAD_LETTERED),
    ]


def test_ten_thousand_parts_end_in_any_order_and_no_item_is_written_more_than_a_few_hundred_times() -> None:
    family = Family()
    body = json.dumps({"job_type": "whole", "idempotency_key": "k1", "payload": {"parts": 10_000, "at_once": 49}})
    for _ in range(3):
        family.world.execute(body)
    view = family.parent
    assert view.split is not None
    assert (view.status, view.split.blocks, view.split.parts) == (Status.WAITING, 205, 10_000)
    parts = list(family.database.all_parts(view.split))
    Random(7).shuffle(parts)  # noqa: S311 - repeatable
    for part in parts:
        family.database.records[part.record] = JobView(
            part.record, Status.COMPLETED, 1, "1:a", place=part.place, names=part.names
        )
    ends = family.database.records.ends
    assert len(ends) == 10_000
    for place in range(0, len(ends), 100):  # as the stream brings them
        family.counting.count(ends[place : place + 100])
    assert family.parent.tally == Tally(10_000, succeeded=10_000, changes=family.parent.tally.changes)  # type: ignore[union-attr]
    assert max(block.changes for block in family.database.blocks.values()) <= 49
    assert {end.state for end in ends} == {PartState.SUCCEEDED}
    assert [body for body in family.messages() if '"whole"' in body] != []


def test_parts_that_are_staged_when_the_job_ends_are_not_lost_silently() -> None:
    family = Family()

    @job("whole", parts=(family.piece,), uses=(THINGS.read_write,), **TIMES)
    def whole(payload: Whole, work: UnitOfWork) -> None:
        work.split(family.piece, Piece(number=1))

    outcome = World(Worker("notes", jobs=(whole, family.piece))).execute(BODY)
    assert isinstance(outcome, DeadLettered)
    assert "1 parts are staged and would be lost" in outcome.failure.error


@pytest.mark.parametrize("beside", ["create", "read", "post"])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_the_loop_of_the_docs_fills_each_checkpoint_whatever_else_is_staged(beside: str, count: int) -> None:
    family = Family()
    made: list[int] = []

    @job("whole", parts=(family.piece,), uses=(THINGS.read_write,), **TIMES)
    def whole(payload: Whole, work: UnitOfWork) -> None:
        for number in range(count):
            match beside:
                case "create":
                    work.create(THINGS, id=f"x{number}")
                case "read":
                    work.read(THINGS, f"x{number}")
                case _:
                    work.enqueue(family.piece.message(Piece(number=100 + number), f"beside-{number}"))
        while work.room_for_parts:
            work.split(family.piece, Piece(number=len(made)))
            made.append(1)
        work.checkpoint({})

    assert World(Worker("notes", jobs=(whole, family.piece))).execute(BODY) == Completed(1)
    assert len(made) == PARTS_AT_ONCE - (count + 1) // 2


class Aliased(Payload):
    """A payload that its own worker does not read."""

    number: int = Field(alias="Number")


def test_a_part_that_its_worker_would_refuse_is_refused_by_its_parent() -> None:
    @job("piece", **TIMES)
    def piece(payload: Aliased, work: UnitOfWork) -> None: ...

    @job("locked", lock=lambda payload: "", **TIMES)
    def locked(payload: Piece, work: UnitOfWork) -> None: ...

    @job("whole", parts=(piece, locked), **TIMES)
    def whole(payload: Whole, work: UnitOfWork) -> None:
        if payload.parts == 1:
            work.split(piece, Aliased(Number=1))
        else:
            work.split(locked, Piece(number=1))

    for parts, reason in ((1, "invalid-payload"), (2, "invalid-lock-key")):
        world = World(Worker("notes", jobs=(whole, piece, locked)))
        body = json.dumps({"job_type": "whole", "idempotency_key": "k1", "payload": {"parts": parts}})
        outcome = world.execute(body)
        assert isinstance(outcome, DeadLettered)
        assert outcome.failure.reason == reason


def test_a_part_that_dies_before_its_first_attempt_has_ended() -> None:
    """A deploy came in between, and the worker does not know it any more: its letter says so, and so does its record."""
    family = Family()
    family.world.run(BODY)
    bodies = family.messages()
    family.world.worker = Worker("notes", jobs=(family.whole, replace(family.piece, lock=lambda payload: "")))
    family.world.run(bodies[0])
    family.world.worker = Worker("notes", jobs=(family.whole, family.piece))
    assert family.run_all(bodies[1:])[-1] == Completed(1)
    tally = family.parent.tally
    assert tally is not None
    assert (tally.succeeded, tally.dead_lettered) == (4, 1)
    ((delivery, _),) = family.world.queue.dead
    assert family.world.run(delivery.body, death=1)[0] == Completed(1)  # and it can be replayed


def test_a_letter_that_only_names_an_accepted_job_does_not_end_it() -> None:
    family = Family()
    family.world.run(BODY)
    bodies = family.messages()
    forged = json.loads(bodies[0])
    forged["payload"] = {"number": "not one"}
    assert isinstance(family.world.run(json.dumps(forged))[0], DeadLettered)
    assert family.run_all(bodies)[-1] == Completed(1)
    assert family.things() == EVERYTHING
