"""Long jobs: each step is committed once, whoever dies where, and goes on behind the last one."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.memory.transport import MemoryTransport
from shared.commit import Progress, Reconciliation
from shared.dependency import Dependency, Keys, Reply
from shared.errors import CacheUnavailable, Refused, StoreUnavailable
from shared.failpoints import Failpoint, armed
from shared.job_record import SYSTEM, Status, record_id
from shared.outcome import Because, Cancelled, Completed, DeadLettered, Postponed, Retried, Unknown
from tests.dying import Killed, dying
from tests.world import START, THINGS, Note, World, body

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.tag import Tag
    from shared.unit_of_work import UnitOfWork

RECORD = record_id(SYSTEM, "note", "k1")
STEPS = 4


class Breaking:
    """A cache that does not answer its first invalidation, and notes the others."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.is_broken, self.dropped = inner, True, list[str]()

    def finish(self, tags: Any, leases: Any) -> None:
        if tags and self.is_broken:
            self.is_broken = False
            raise CacheUnavailable
        self.inner.finish(tags, leases)
        self.dropped += [tag.name for tag in tags]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def stepping(each: Callable[[int, UnitOfWork], None] | None = None, steps: int = STEPS, needs: int = 1) -> World:
    """A job that creates one thing in each of its steps, and one at its end."""

    def handler(payload: Note, work: UnitOfWork) -> object:
        begin = 0 if work.last_checkpoint is None else work.last_checkpoint["done"]
        for number in range(begin, steps):
            if each is not None:
                each(number, work)
            work.create(THINGS, id=f"{payload.thing}/{number}", attempt=work.attempt)
            work.invalidate(f"thing/{number}")
            work.progress(number + 1, steps)
            work.checkpoint({"done": number + 1}, needs=timedelta(seconds=needs))
        work.create(THINGS, id=f"{payload.thing}/end")
        return {"steps": steps, "from": begin}

    return World.of(handler)


def things(world: World) -> dict[str, int]:
    """The version of each thing: 1 where it was written once."""
    return {key[0]: stored.version for (table, key), stored in world.database.items.items() if table == "things"}


EVERYTHING = {**{f"a/{number}": 1 for number in range(STEPS)}, "a/end": 1}


def test_a_job_commits_each_step_and_its_end() -> None:
    world = stepping()
    outcome, acknowledged = world.run(body())
    assert (outcome, acknowledged) == (Completed(1), True)
    assert things(world) == EVERYTHING
    view = world.database.view(RECORD)
    assert (view.checkpoints, view.progress) == (STEPS, Progress(STEPS, START, STEPS))
    assert json.loads(view.result) == {"steps": STEPS, "from": 0}


@pytest.mark.parametrize("point", [Failpoint.CHECKPOINTED, Failpoint.STEP_INVALIDATED, Failpoint.PROGRESS_TOLD])
@pytest.mark.parametrize("after", range(STEPS))
def test_i20_a_job_that_is_killed_at_a_step_goes_on_behind_the_last_that_was_committed(
    point: Failpoint, after: int
) -> None:
    world = stepping(lambda number, work: world.clock.pass_(timedelta(seconds=2)))
    with dying(point, after + 1), pytest.raises(Killed):
        world.execute(body())
    committed = after if point is Failpoint.PROGRESS_TOLD else after + 1
    assert world.database.view(RECORD).checkpoints == committed
    world.clock.pass_(timedelta(minutes=2))
    assert world.execute(body()) == Completed(2)
    assert things(world) == EVERYTHING
    assert json.loads(world.database.view(RECORD).result)["from"] == committed


def test_ide_15_a_failing_second_step_leaves_the_first_as_it_is() -> None:
    failing = iter([TimeoutError, SystemExit])

    def each(number: int, work: UnitOfWork) -> None:
        if number == 1 and (error := next(failing, None)) is not None:
            raise error

    world = stepping(each)
    assert isinstance(world.execute(body()), Retried)
    world.clock.pass_(timedelta(minutes=10))
    assert isinstance(world.execute(body()), Retried)
    world.clock.pass_(timedelta(minutes=10))
    assert world.execute(body()) == Completed(3)
    assert things(world) == EVERYTHING
    assert world.thing("a/0") == {"id": "a/0", "attempt": 1}
    assert world.thing("a/1") == {"id": "a/1", "attempt": 3}


def test_a_job_that_is_longer_than_its_invocation_hands_over_and_spends_no_attempt() -> None:
    world = stepping(lambda number, work: world.clock.pass_(timedelta(seconds=4)), steps=20, needs=4)
    outcomes = []
    for _ in range(30):
        outcome, acknowledged = world.run(body())
        outcomes.append(outcome)
        if acknowledged:
            break
    assert outcomes[-1] == Completed(1), outcomes
    assert set(outcomes[:-1]) == {Postponed(timedelta(0), Because.HANDED_OVER)}
    assert (
        len(outcomes) == 11
    )  # of ten seconds two steps take eight, and the third does not begin; nor does the end after ten such pairs
    assert len(things(world)) == 21
    assert set(things(world).values()) == {1}


def test_without_being_told_a_step_may_take_half_as_long_again_as_the_longest() -> None:
    begun: list[int] = []

    def handler(payload: Note, work: UnitOfWork) -> None:
        for number in range(3):
            begun.append(number)
            world.clock.pass_(timedelta(seconds=4))
            work.checkpoint({"done": number})

    world = World.of(handler)
    assert world.execute(body()) == Postponed(timedelta(0), Because.HANDED_OVER)
    assert begun == [0]  # after four of ten seconds six are left, which is just not more than six


def test_r5_1_a_job_whose_lease_is_lost_at_a_step_stops_and_another_takes_over() -> None:
    def each(number: int, work: UnitOfWork) -> None:
        if number == 2 and not lost:
            lost.append(number)
            work.guards[0].lost.set()  # type: ignore[attr-defined]

    lost: list[int] = []
    world = stepping(each)
    assert world.execute(body()).because is Because.LEASE_LOST  # type: ignore[union-attr]
    world.clock.pass_(timedelta(minutes=2))
    assert world.execute(body()) == Completed(1)
    assert things(world) == EVERYTHING


def test_a_process_that_stops_hands_its_job_over_between_two_steps() -> None:
    def each(number: int, work: UnitOfWork) -> None:
        if number == 1 and work.stopping is not None:
            work.stopping.set()

    world = stepping(each)
    assert world.execute(body()) == Postponed(timedelta(0), Because.STOPPING)
    assert sorted(things(world)) == ["a/0", "a/1"]


def test_i37_a_step_whose_tags_were_not_dropped_is_not_left_behind() -> None:
    world = stepping()
    world.cache = cache = Breaking(world.cache)
    outcome = world.execute(body())
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.INVALIDATION_FAILED
    assert (world.database.view(RECORD).attempts, cache.dropped) == (0, [])
    world.clock.pass_(timedelta(minutes=2))
    assert world.execute(body()) == Completed(1)
    assert cache.dropped == [f"thing/{number}" for number in range(STEPS)]


def test_poison_behind_a_checkpoint_has_no_more_attempts_than_any_other() -> None:
    def each(number: int, work: UnitOfWork) -> None:
        if number == 2:
            raise TimeoutError

    world = stepping(each)
    outcomes = []
    for _ in range(3):
        outcomes.append(world.execute(body()))
        world.clock.pass_(timedelta(minutes=30))
    assert isinstance(outcomes[-1], DeadLettered)
    assert sorted(things(world)) == ["a/0", "a/1"]


def test_a_step_that_conflicts_writes_nothing_and_is_done_anew() -> None:
    def each(number: int, work: UnitOfWork) -> None:
        found = work.read(THINGS, "b")
        if found is not None:
            work.update(found, seen=number)
        if number == 1 and work.attempt == 1:
            stored = world.database.items["things", ("b",)]
            world.database.items["things", ("b",)] = replace(stored, version=stored.version + 1)

    world = stepping(each)
    world.run(body(idempotency_key="other", payload={"thing": "b"}))
    stored = world.database.items["things", ("b/0",)]
    world.database.items["things", ("b",)] = replace(stored, attributes={"id": "b"})
    assert isinstance(world.execute(body()), Retried)
    assert "a/1" not in things(world)
    world.clock.pass_(timedelta(minutes=10))
    assert world.execute(body()) == Completed(2)
    assert things(world)["a/1"] == 1


def test_what_was_read_before_a_checkpoint_is_read_anew_after_it() -> None:
    def handler(payload: Note, work: UnitOfWork) -> None:
        first = work.create(THINGS, id="c", text="one")
        work.checkpoint({}, needs=timedelta(0))
        with pytest.raises(Refused, match="was not read or created by this unit of work"):
            work.update(first, text="two")
        found = work.read(THINGS, "c")
        assert found is not None
        work.update(found, text="three")

    world = World.of(handler)
    assert world.execute(body()) == Completed(1)
    assert world.thing("c") == {"id": "c", "text": "three"}


def test_progress_is_written_every_two_seconds_at_most_and_with_each_commit() -> None:
    written: list[int] = []

    def handler(payload: Note, work: UnitOfWork) -> None:
        for number in range(40):
            work.progress(number, 40, "lines")
            world.clock.pass_(timedelta(seconds=0.1))

    world = World.of(handler)
    note = world.database.note_progress

    def noting(hold: Any, progress: Progress) -> None:
        written.append(progress.done)
        note(hold, progress)

    world.database.note_progress = noting
    assert world.execute(body()) == Completed(1)
    assert written == [0, 20]
    assert world.database.view(RECORD).progress.done == 39


def test_progress_that_nobody_takes_is_no_failure_of_the_job() -> None:
    world = stepping()

    def gone(*_: object) -> None:
        raise StoreUnavailable("no answer")

    world.database.note_progress = gone
    assert world.execute(body()) == Completed(1)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"x": "y" * 17_000}, "16384 are kept"),
        ({"x": 1.5}, "is a float"),
        ({"x": {1}}, "the checkpoint.x is a set"),
        ({"x": b"1"}, "cannot be kept as JSON"),
        ({"x": "\ud800"}, "half a surrogate pair"),
    ],
)
def test_a_state_that_cannot_be_kept_is_refused_before_anything_is_written(state: Any, told: str) -> None:
    refused: list[str] = []

    def handler(payload: Note, work: UnitOfWork) -> None:
        work.create(THINGS, id="d")
        try:
            work.checkpoint(state)
        except Refused as error:
            refused.append(str(error))
            raise

    world = World.of(handler)
    assert isinstance(world.execute(body()), DeadLettered)
    assert told in refused[0]
    assert things(world) == {}


@pytest.mark.parametrize(
    ("done", "total", "note"), [(-1, None, ""), (0, -1, ""), (0, None, "x" * 201), (0, None, "\ud800")]
)
def test_progress_that_nobody_could_show_is_refused(done: int, total: int | None, note: str) -> None:
    with pytest.raises(Refused):
        Progress(done, START, total, note)


def test_an_unknown_job_is_not_settled_at_a_checkpoint() -> None:
    def handler(payload: Note, work: UnitOfWork) -> None:
        work.reconcile(Reconciliation("r", Status.COMPLETED))
        work.checkpoint({})

    world = World.of(handler)
    assert isinstance(world.execute(body()), DeadLettered)
    assert world.database.view(RECORD).checkpoints == 0


def test_the_tags_of_a_checkpoint_are_kept_without_what_was_fresh() -> None:
    def handler(payload: Note, work: UnitOfWork) -> None:
        from shared.caching.store import Loaded  # noqa: PLC0415 - here alone
        from shared.tag import Version  # noqa: PLC0415

        work.refresh("user/1", "user", Loaded("ann", Version(3)))
        work.checkpoint({"done": 1}, needs=timedelta(0))
        kept.extend(world.database.view(RECORD).checkpoint_tags)

    kept: list[Tag] = []
    world = World.of(handler)
    assert world.execute(body()) == Completed(1)
    assert [(tag.name, tag.fresh) for tag in kept] == [("user/1", None)]


# Calls to the outside, and being asked to end.

BANK = Dependency("bank", timeout=timedelta(seconds=1), keys=Keys.NOT_TAKEN)
SHOP = Dependency("shop", timeout=timedelta(seconds=1), key_lifetime=timedelta(hours=24))


def calling(use: Dependency, steps: int = 4) -> tuple[World, list[str]]:
    """Each step calls, and writes that it did."""
    calls: list[str] = []

    def answer(method: str, path: str, body: Any, headers: Any) -> Reply:
        calls.append(path)
        return Reply(200, {})

    def handler(payload: Note, work: UnitOfWork) -> object:
        begin = 0 if work.last_checkpoint is None else work.last_checkpoint["done"]
        for number in range(begin, steps):
            work.call(use, "POST", f"/charge/{number}", headers={"Idempotency-Key": str(number)})
            work.create(THINGS, id=f"charged/{number}")
            world.clock.pass_(timedelta(seconds=4))
            work.checkpoint({"done": number + 1}, needs=timedelta(seconds=4))
        return None

    world = World.of(handler, uses=(THINGS.read_write, use))
    world.transport = MemoryTransport(answer)
    return world, calls


def test_g5_a_call_that_cannot_be_repeated_is_made_once_a_step_and_by_whichever_attempt() -> None:
    world, calls = calling(BANK)
    outcomes = [world.execute(body()) for _ in range(3)]
    assert outcomes[-1] == Completed(1)
    assert calls == [f"/charge/{number}" for number in range(4)]
    assert len(things(world)) == 4


def test_g5_a_call_whose_step_was_not_committed_is_not_repeated() -> None:
    world, calls = calling(BANK)
    with dying(Failpoint.CALLED, 2), pytest.raises(Killed):
        world.execute(body())
    world.clock.pass_(timedelta(minutes=2))
    assert world.execute(body()) == Unknown()
    assert len(calls) == 2


def test_a_key_is_as_old_as_its_step_and_not_as_the_job() -> None:
    world, calls = calling(SHOP, steps=6)
    for _ in range(4):
        outcome = world.execute(body())
        world.clock.pass_(timedelta(hours=24) - timedelta(seconds=5))  # its last call is just not too old
    assert outcome == Completed(1)
    assert len(calls) == 6


def test_a_key_that_its_step_used_days_ago_is_too_old_still() -> None:
    world, calls = calling(SHOP)
    with dying(Failpoint.CALLED, 2), pytest.raises(Killed):
        world.execute(body())
    world.clock.pass_(timedelta(hours=30))
    outcome = world.execute(body())
    assert isinstance(outcome, Retried)
    assert len(calls) == 2


def test_what_a_step_has_done_outside_is_written_although_the_job_is_to_end() -> None:
    world, calls = calling(BANK)

    def cancel(point: Failpoint) -> None:
        if point is Failpoint.CALLED and len(calls) == 2:
            world.database.cancel(RECORD, SYSTEM, world.clock.now())

    with armed(cancel):
        assert world.execute(body()) == Cancelled()
    assert (len(calls), sorted(things(world))) == (2, ["charged/0", "charged/1"])
    assert world.database.view(RECORD).status is Status.CANCELLED


def test_a_job_that_is_to_end_finds_out_first_whether_its_call_was_done() -> None:
    world, calls = calling(BANK)
    with dying(Failpoint.CALLED, 2), pytest.raises(Killed):
        world.execute(body())
    world.database.cancel(RECORD, SYSTEM, world.clock.now())
    world.clock.pass_(timedelta(minutes=2))
    assert world.execute(body()) == Unknown()
    assert len(calls) == 2


@pytest.mark.parametrize("ends", ["cancelled", "spent"])
def test_i37_the_last_steps_tags_are_dropped_although_the_handler_never_runs_again(ends: str) -> None:
    world = stepping()
    world.cache = cache = Breaking(world.cache)
    cache.is_broken = False
    for _ in range(3 if ends == "spent" else 1):
        with dying(Failpoint.CHECKPOINTED), pytest.raises(Killed):
            world.execute(body())
        world.clock.pass_(timedelta(minutes=30))
    if ends == "cancelled":
        world.database.cancel(RECORD, SYSTEM, world.clock.now())
    last = f"thing/{len(things(world)) - 1}"
    assert last not in cache.dropped
    cache.is_broken = True
    outcome = world.execute(body())
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.INVALIDATION_FAILED
    world.clock.pass_(timedelta(minutes=30))
    outcome = world.execute(body())
    assert isinstance(outcome, Cancelled if ends == "cancelled" else DeadLettered)
    assert last in cache.dropped


def test_a_job_that_is_to_end_spends_no_attempt_on_a_redis_that_is_gone() -> None:
    world = stepping()
    world.cache = cache = Breaking(world.cache)
    cache.is_broken = False
    with dying(Failpoint.CHECKPOINTED), pytest.raises(Killed):
        world.execute(body())
    world.database.cancel(RECORD, SYSTEM, world.clock.now())
    world.clock.pass_(timedelta(minutes=30))
    for _ in range(10):
        cache.is_broken = True
        outcome = world.execute(body())
        assert isinstance(outcome, Postponed)
        assert outcome.because is Because.INVALIDATION_FAILED
        assert world.database.view(RECORD).attempts == 1
        world.clock.pass_(timedelta(minutes=30))
    assert world.execute(body()) == Cancelled()


def test_a_step_that_was_committed_after_the_deadline_is_no_failure() -> None:
    seconds = iter([3, 8, 3, 8])
    world = stepping(lambda number, work: world.clock.pass_(timedelta(seconds=next(seconds))), needs=1)
    outcomes = [world.execute(body()) for _ in range(3)]
    assert outcomes[0] == Postponed(timedelta(0), Because.HANDED_OVER)
    assert outcomes[-1] == Completed(1)
    assert things(world) == EVERYTHING
