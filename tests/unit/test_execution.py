"""The life of a delivery, step by step, over memory stores."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.caching.lives import Lives
from shared.caching.store import Hit, Loaded, Miss
from shared.errors import (
    CacheUnavailable,
    ClaimLost,
    DeadLetter,
    NoAnswer,
    OutcomeUnknown,
    Postpone,
    Refused,
    RetryLater,
    StoreUnavailable,
    Unavailable,
)
from shared.job import Unique, WithoutLease
from shared.job_record import SYSTEM, Status, record_id
from shared.lease import Lease
from shared.outcome import Because, Completed, DeadLettered, Duplicate, Failed, Postponed, Retried, Unknown
from shared.retry import Retry
from shared.tag import Tag
from shared.wire.deposits import LARGEST_BYTES
from tests.dying import Killed
from tests.world import START, THINGS, Note, World, acquired, body, note_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.unit_of_work import UnitOfWork


RECORD = record_id(SYSTEM, "note", "k1")


def raising(error: BaseException) -> Callable[[Note, UnitOfWork], object]:
    def handler(payload: Note, work: UnitOfWork) -> object:
        raise error

    return handler


def test_a_job_writes_its_item_its_record_and_its_tags_once() -> None:
    world = World.of()
    assert world.run(body()) == (Completed(1), True)
    assert world.thing("a") == {"id": "a", "text": "x", "times": 1}
    view = world.database.view(RECORD)
    assert (view.status, view.attempts, view.tags) == (Status.COMPLETED, 1, (Tag("thing/a"),))
    assert json.loads(view.result) == {"written": "x"}
    assert world.cache.leases == {}


def test_ide_11_r4_1_two_job_ids_with_one_key_have_one_effect() -> None:
    world = World.of()
    world.run(body(job_id="first"))
    assert world.run(body(job_id="second")) == (Duplicate("completed"), True)
    assert world.thing("a") == {"id": "a", "text": "x", "times": 1}


def test_ide_11_order_of_fields_and_blanks_make_no_difference() -> None:
    world = World.of()
    world.run('{"job_type":"note","idempotency_key":"k1","payload":{"thing":"a","text":"x"}}')
    again = '{ "payload": {"text": "x",  "thing": "a"}, "idempotency_key": "k1", "job_type": "note" }'
    assert world.run(again)[0] == Duplicate("completed")


def test_a_key_with_another_payload_is_dead_lettered_and_changes_nothing() -> None:
    world = World.of()
    world.run(body())
    outcome, acknowledged = world.run(body(payload={"thing": "b"}))
    assert isinstance(outcome, DeadLettered)
    assert (outcome.failure.reason, acknowledged) == ("idempotency-key-reused", True)
    assert world.thing("b") is None
    assert world.database.view(RECORD).status is Status.COMPLETED
    assert json.loads(world.queue.dead[0][1])["death"] == 1


@pytest.mark.parametrize(
    ("key", "reason"),
    [(key, "missing-idempotency-key") for key in (..., None, "", "   ", "\t")]
    + [(key, "invalid-idempotency-key") for key in (7, ["k"])],
)
def test_ide_04_a_missing_or_blank_key_is_refused_and_stores_nothing(key: Any, reason: str) -> None:
    world = World.of()
    outcome, _ = world.run(body(idempotency_key=key))
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == reason
    assert world.database.records == {}
    assert world.thing("a") is None


def test_bat_13_an_unknown_job_type_is_dead_lettered_not_deleted() -> None:
    world = World.of()
    outcome, acknowledged = world.run(body(job_type="refund.v9"))
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == "unknown-job-type"
    assert acknowledged
    assert len(world.queue.dead) == 1


def test_a_payload_version_from_the_future_waits_and_costs_no_attempt() -> None:
    world = World.of()
    outcome, acknowledged = world.run(body(version=2))
    assert isinstance(outcome, Postponed)
    assert (outcome.because, acknowledged) == (Because.NEWER_VERSION, False)
    assert world.database.records == {}


def test_a_payload_version_that_is_no_longer_read_is_dead_lettered_with_its_reason() -> None:
    world = World.of(version=3)
    outcome, _ = world.run(body(version=2))
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == "schema-unsupported"


def test_i22_with_too_little_time_left_nothing_starts() -> None:
    world = World.of()
    outcome = world.execute(body(), left=timedelta(seconds=14))
    assert outcome == Postponed(timedelta(seconds=1), Because.TOO_LITTLE_TIME)
    assert world.database.records == {}


def test_lck_contention_postpones_and_costs_no_attempt() -> None:
    world = World.of()
    acquired(world.cache, "thing/a", "somebody", timedelta(seconds=30))
    outcome, acknowledged = world.run(body())
    assert isinstance(outcome, Postponed)
    assert (outcome.because, acknowledged) == (Because.CONTENDED, False)
    assert world.database.records == {}
    assert world.cache.leases["thing/a"][0] == "somebody"


class NoCache:
    """Redis is gone."""

    def __getattr__(self, name: str) -> Any:
        def fail(*arguments: Any) -> Any:
            message = "gone"
            raise CacheUnavailable(message)

        return fail


def test_i34_without_redis_a_job_goes_on_fenced_by_its_commit() -> None:
    world = World.of()
    world.cache = NoCache()
    outcome, acknowledged = world.run(body())
    assert world.thing("a") == {"id": "a", "text": "x", "times": 1}
    # Committed, but its tags could not be dropped: not acknowledged, and only that is repeated.
    assert isinstance(outcome, Postponed)
    assert (outcome.because, acknowledged) == (Because.INVALIDATION_FAILED, False)


def test_i34_without_redis_a_job_that_wants_its_lease_waits() -> None:
    world = World.of(without_lease=WithoutLease.POSTPONE)
    world.cache = NoCache()
    outcome, _ = world.run(body())
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.CACHE_GONE
    assert world.database.records == {}


def test_redelivery_of_a_committed_job_repeats_only_the_invalidation() -> None:
    world = World.of()
    healthy, world.cache = world.cache, NoCache()
    world.run(body())
    world.cache = healthy
    assert healthy.fetch("thing/a", "n", "refill-1", timedelta(minutes=1), None) == Miss()
    assert world.run(body()) == (Duplicate("completed"), True)
    assert not healthy.store(
        "thing/a", "n", "refill-1", Loaded("old"), Lives(timedelta(minutes=1), timedelta(minutes=1))
    )
    assert world.thing("a") == {"id": "a", "text": "x", "times": 1}


def test_r2_2_the_cache_is_not_touched_before_the_commit() -> None:
    world = World.of()
    order: list[str] = []
    commit, finish = world.database.commit, world.cache.finish

    class Noted:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def commit(self, *arguments: Any) -> None:
            order.append("commit")
            commit(*arguments)

        def finish(self, *arguments: Any) -> None:
            order.append("finish")
            finish(*arguments)

    world.database, world.cache = Noted(world.database), Noted(world.cache)
    world.run(body())
    assert order == ["commit", "finish"]


def test_a_transient_error_spends_an_attempt_and_sets_the_earliest_next_one() -> None:
    world = World.of(raising(Unavailable("503", dependency="shop", after=timedelta(seconds=42))))
    outcome, acknowledged = world.run(body())
    assert isinstance(outcome, Retried)
    assert (outcome.after, outcome.failure.dependency, acknowledged) == (timedelta(seconds=42), "shop", False)
    assert world.queue.hidden["m1"] == timedelta(seconds=42)
    second, _ = world.run(body())  # another copy cannot run through the backoff of the first
    assert isinstance(second, Postponed)
    assert second.because is Because.TOO_EARLY
    assert world.database.view(RECORD).attempts == 1


def test_i23_a_transient_error_is_dead_lettered_after_the_last_attempt() -> None:
    world = World.of(raising(TimeoutError()))
    for _ in range(2):
        assert isinstance(world.run(body())[0], Retried)
        world.clock.pass_(timedelta(minutes=6))
    outcome, acknowledged = world.run(body())
    assert isinstance(outcome, DeadLettered)
    assert (outcome.attempts, acknowledged) == (3, True)
    view = world.database.view(RECORD)
    assert (view.status, view.death, view.attempts) == (Status.DEAD_LETTERED, 1, 3)
    facts = json.loads(world.queue.dead[0][1])
    assert facts["first_failure"] < facts["last_failure"]
    assert facts["idempotency_key"] == "k1"


def test_an_unknown_error_gets_few_attempts() -> None:
    world = World.of(raising(RuntimeError("a bug")), retry=None)
    outcomes = []
    for _ in range(3):
        outcomes.append(world.run(body())[0])
        world.clock.pass_(timedelta(hours=1))
    assert [type(outcome) for outcome in outcomes] == [Retried, Retried, DeadLettered]


def test_a_permanent_error_is_dead_lettered_at_once_with_its_reason() -> None:
    world = World.of(raising(DeadLetter("unknown-thing", "there is none")))
    outcome, acknowledged = world.run(body())
    assert isinstance(outcome, DeadLettered)
    assert (outcome.failure.reason, outcome.attempts, acknowledged) == ("unknown-thing", 1, True)


def test_i19_postpone_gives_the_attempt_back() -> None:
    world = World.of(raising(Postpone("later", after=timedelta(minutes=3))))
    for _ in range(5):
        outcome, _ = world.run(body())
        assert outcome == Postponed(timedelta(minutes=3), Because.ASKED)
        world.clock.pass_(timedelta(minutes=4))
    assert world.database.view(RECORD).attempts == 0


def test_retry_later_spends_an_attempt_and_waits_as_asked() -> None:
    world = World.of(raising(RetryLater("later", after=timedelta(minutes=3))))
    outcome, _ = world.run(body())
    assert isinstance(outcome, Retried)
    assert outcome.after == timedelta(minutes=3)


def test_i21_an_unknown_outcome_stops_the_job_and_sends_its_reconciling_job_in_the_same_commit() -> None:
    other = note_job(lock=None)
    world = World.of(raising(OutcomeUnknown("no answer", reconcile=other.message(Note(thing="r"), key="reconcile/1"))))
    assert world.run(body()) == (Unknown(), True)
    view = world.database.view(RECORD)
    assert (view.status, view.expires) == (Status.UNKNOWN, None)
    (posting,) = world.database.outbox.values()
    assert json.loads(posting.body)["idempotency_key"] == "reconcile/1"
    assert world.run(body())[0] == Duplicate("unknown")  # and is not run again by itself


def test_a_business_failure_is_kept_for_the_client_and_is_no_retry() -> None:
    world = World.of(lambda payload, work: Failed("card_declined"))
    assert world.run(body())[0] == Completed(1)
    view = world.database.view(RECORD)
    assert (view.status, json.loads(view.result)["code"]) == (Status.FAILED, "card_declined")


def test_i28_a_conflict_writes_nothing_and_is_retried() -> None:
    world = World.of()
    read = world.database.read

    def racing(payload: Note, work: UnitOfWork) -> object:
        found = work.read(THINGS, "a")
        assert found is None
        world.database.items["things", ("a",)] = read_other()
        work.create(THINGS, id="a", text="mine")
        return None

    def read_other() -> Any:
        from shared.item import Stored  # noqa: PLC0415

        return Stored({"id": "a", "text": "theirs"}, 1)

    world.worker = World.of(racing).worker
    outcome, _ = world.run(body())
    assert isinstance(outcome, Retried)
    assert outcome.failure.error.startswith("Conflict")
    assert read(THINGS, ("a",)).attributes["text"] == "theirs"


def test_no_write_skew_an_item_only_read_must_be_unchanged_at_the_commit() -> None:
    world = World.of()
    world.run(body())

    def skewed(payload: Note, work: UnitOfWork) -> object:
        work.read(THINGS, "a")
        stored = world.database.items["things", ("a",)]
        world.database.items["things", ("a",)] = type(stored)(stored.attributes, stored.version + 1)
        work.create(THINGS, id="b")
        return None

    world.worker = World.of(skewed).worker
    outcome, _ = world.run(body(idempotency_key="k2"))
    assert isinstance(outcome, Retried)
    assert world.thing("b") is None


@pytest.mark.parametrize(
    "result", [1.5, float("nan"), {"amount": 0.1}, object(), "x" * LARGEST_BYTES, {"deep": "\ud83d"}]
)
def test_a_result_that_cannot_be_kept_is_refused_before_anything_is_written(result: Any) -> None:
    def handler(payload: Note, work: UnitOfWork) -> object:
        work.create(THINGS, id="a")
        return result

    world = World.of(handler)
    outcome, _ = world.run(body())
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.error.startswith("Refused")
    assert world.thing("a") is None


def test_ide_01_a_killed_attempt_is_taken_over_after_its_deadline_and_not_before() -> None:
    calls = []

    def handler(payload: Note, work: UnitOfWork) -> object:
        calls.append(work.attempt)
        if len(calls) == 1:
            raise Killed
        return None

    world = World.of(handler, timeout=timedelta(seconds=2), lock=None)
    with pytest.raises(Killed):
        world.execute(body(), left=timedelta(seconds=9))
    world.clock.pass_(timedelta(seconds=1))
    early, _ = world.run(body())
    assert isinstance(early, Postponed)
    assert early.because is Because.HELD
    world.clock.pass_(timedelta(seconds=11))
    assert world.run(body()) == (Completed(2), True)


def test_i15_a_zombie_that_lost_its_claim_changes_nothing() -> None:
    world = World.of()
    turns: list[str] = []

    def handler(payload: Note, work: UnitOfWork) -> object:
        found = work.read(THINGS, "a")
        assert found is None
        work.create(THINGS, id="a", text=f"attempt {work.attempt}")
        if not turns:
            turns.append("paused")
            world.clock.pass_(timedelta(minutes=5))
            assert world.run(body())[0] == Completed(2)
            world.clock.moment -= timedelta(minutes=5)  # the zombie's own clock stood still
        return {"by": work.attempt}

    world.worker = World.of(handler, lock=None).worker
    outcome, acknowledged = world.run(body())
    assert isinstance(outcome, Postponed)
    assert (outcome.because, acknowledged) == (Because.CLAIM_LOST, False)
    assert world.thing("a") == {"id": "a", "text": "attempt 2"}
    assert json.loads(world.database.view(RECORD).result) == {"by": 2}


def test_lck_02_work_that_lost_its_lease_stops_before_its_next_step_and_keeps_its_attempt() -> None:
    def handler(payload: Note, work: UnitOfWork) -> object:
        work.guards[0].lost.set()  # type: ignore[attr-defined]
        work.read(THINGS, "a")
        pytest.fail("the next step was taken")

    world = World.of(handler)
    outcome, _ = world.run(body())
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.LEASE_LOST
    assert world.database.view(RECORD).attempts == 0
    assert world.telemetry.counts["lease_lost", "note"] == 1


def test_lck_02_a_paused_holder_whose_lease_went_to_another_job_writes_nothing_over_it() -> None:
    world = World.of(lease=timedelta(seconds=5))
    turns: list[str] = []
    plain = world.worker

    def handler(payload: Note, work: UnitOfWork) -> object:
        assert work.read(THINGS, "a") is None
        work.create(THINGS, id="a", text=payload.text, times=1)
        turns.append("paused")
        world.clock.pass_(timedelta(seconds=6))  # longer than the lease
        world.worker = plain
        assert world.run(body(idempotency_key="k2", payload={"thing": "a", "text": "B"}))[0] == Completed(1)
        return None

    world.worker = World.of(handler, lease=timedelta(seconds=5)).worker
    outcome, acknowledged = world.run(body(payload={"thing": "a", "text": "A"}))
    assert turns == ["paused"]
    assert isinstance(outcome, Retried)
    assert not acknowledged
    assert world.thing("a") == {"id": "a", "text": "B", "times": 1}


def test_without_dynamodb_a_delivery_is_postponed() -> None:
    world = World.of()

    def gone(*arguments: Any) -> Any:
        raise StoreUnavailable("no answer")

    class Gone:
        claim = staticmethod(gone)

    world.database = Gone()
    outcome, acknowledged = world.run(body())
    assert isinstance(outcome, Postponed)
    assert (outcome.because, acknowledged) == (Because.STORE_UNAVAILABLE, False)


def test_g8_replay_of_a_dead_letter_gets_fresh_attempts_and_older_copies_are_stale() -> None:
    answers: list[BaseException | None] = [DeadLetter("broken"), None]

    def handler(payload: Note, work: UnitOfWork) -> object:
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        return None

    world = World.of(handler)
    world.run(body())
    assert world.run(body())[0] == Duplicate("dead-lettered")  # a copy from before its death
    assert world.run(body(), death=1)[0] == Completed(1)
    assert world.run(body(), death=1)[0] == Duplicate("completed")


def test_a_dead_letter_whose_record_was_never_marked_can_be_replayed() -> None:
    answers: list[BaseException | None] = [DeadLetter("broken"), None]

    def handler(payload: Note, work: UnitOfWork) -> object:
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        return None

    world = World.of(handler)
    world.execute(body())  # the dead letter is sent, then the process dies before the mark
    world.clock.pass_(timedelta(minutes=5))
    assert world.run(body(), death=1)[0] == Completed(1)
    assert world.run(body())[0] == Duplicate("completed")


def test_ide_13_a_record_whose_expiry_is_now_counts_as_absent() -> None:
    world = World.of()
    world.run(body())
    world.clock.moment = world.database.records[RECORD].expires
    assert world.database.view(RECORD) is None
    assert world.run(body())[0] == Completed(1)
    assert world.thing("a") == {"id": "a", "text": "x", "times": 2}


def test_a_record_that_is_not_final_never_expires() -> None:
    world = World.of(raising(TimeoutError()))
    world.run(body())
    assert world.database.view(RECORD).expires is None


def test_attempts_that_all_died_silently_are_dead_lettered_as_spent() -> None:
    world = World.of(raising(Killed()), lock=None)
    for _ in range(3):
        with pytest.raises(Killed):
            world.execute(body())
        world.clock.pass_(timedelta(minutes=5))
    outcome, acknowledged = world.run(body())
    assert isinstance(outcome, DeadLettered)
    assert (outcome.failure.reason, outcome.attempts, acknowledged) == ("attempts-spent", 3, True)
    assert world.database.view(RECORD).status is Status.DEAD_LETTERED


def test_a_claim_that_cannot_be_given_back_is_left_to_its_deadline() -> None:
    world = World.of(raising(TimeoutError()))
    inner = world.database

    class Deaf:
        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        def release(self, *arguments: Any) -> None:
            raise ClaimLost

    world.database = Deaf()
    assert isinstance(world.run(body())[0], Retried)
    assert world.telemetry.warnings[0][0] == "claim_not_released"
    assert inner.view(RECORD).status is Status.RUNNING


def test_i48_neither_payload_nor_key_is_logged() -> None:
    world = World.of(raising(ValueError("canary-text")))
    world.run(body(idempotency_key="canary-key", payload={"thing": "canary-thing"}))
    world.run(body(idempotency_key="canary-2", payload={"thing": 5, "canary": 1}))
    assert "canary" not in repr(world.telemetry.jobs) + repr(world.telemetry.warnings)


def test_a_store_that_does_not_answer_a_read_costs_no_attempt() -> None:
    world = World.of(raising(StoreUnavailable("busy")))
    for _ in range(5):
        outcome, _ = world.run(body())
        assert isinstance(outcome, Postponed)
        assert outcome.because is Because.STORE_UNAVAILABLE
        world.clock.pass_(timedelta(minutes=2))
    assert world.database.view(RECORD).attempts == 0


@pytest.mark.parametrize("name", ["dynamodb", "s3", "store"])
def test_a_dependency_that_is_named_as_a_store_spends_attempts(name: str) -> None:
    world = World.of(raising(Unavailable("busy", dependency=name)))
    outcome, _ = world.run(body())
    assert isinstance(outcome, Retried)
    assert outcome.failure.dependency == name
    assert world.database.view(RECORD).attempts == 1


def test_a_commit_that_nobody_answers_for_leaves_the_claim_to_its_deadline() -> None:
    world = World.of(raising(NoAnswer("silence", dependency="dynamodb")))
    outcome, _ = world.run(body())
    assert isinstance(outcome, Postponed)
    assert world.database.view(RECORD).status is Status.RUNNING


def test_a_commit_that_landed_in_the_last_attempt_is_not_dead_lettered_and_its_cache_is_invalidated() -> None:
    world = World.of(retry=Retry(max_attempts=1))
    inner = world.database

    class Lost:
        """The transaction is written, its reply is lost, and so is the look at it."""

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        def commit(self, *arguments: Any) -> None:
            inner.commit(*arguments)
            raise Unavailable("no answer", dependency="elsewhere")

    world.cache.fetch("thing/a", "n", "r1", timedelta(days=1), None)
    world.cache.store("thing/a", "n", "r1", Loaded("old"), Lives(timedelta(days=1), timedelta(days=1)))
    world.database = Lost()
    outcome, acknowledged = world.run(body())
    assert isinstance(outcome, DeadLettered)
    assert not acknowledged
    assert not world.queue.dead
    world.database = inner
    assert world.run(body()) == (Duplicate("completed"), True)
    assert not isinstance(world.cache.fetch("thing/a", "n", "r2", timedelta(days=1), None), Hit)


@pytest.mark.parametrize("after", [timedelta.max, timedelta(days=10), timedelta(0), timedelta(-5)])
@pytest.mark.parametrize("error", [RetryLater, Postpone])
def test_a_wait_beyond_what_sqs_can_hold_is_cut_and_none_is_a_hot_loop(error: Any, after: timedelta) -> None:
    world = World.of(raising(error("later", after=after)))
    outcome, _ = world.run(body())
    assert isinstance(outcome, Retried | Postponed)
    assert timedelta(0) < outcome.after < timedelta(hours=12)
    assert world.database.view(RECORD).status is Status.RETRYING


def test_text_that_nobody_can_encode_does_not_hold_a_job() -> None:
    world = World.of(raising(DeadLetter("b\ud83dd", "\ud83d")))
    outcome, acknowledged = world.run(body())
    assert isinstance(outcome, DeadLettered)
    assert acknowledged
    world = World.of(lambda payload, work: Failed("x", "\ud83d"))
    assert isinstance(world.run(body())[0], DeadLettered)


def test_a_claim_that_the_store_refuses_is_dead_lettered_with_its_reason() -> None:
    class Refusing:
        def claim(self, *arguments: Any) -> Any:
            raise Refused("dynamodb refuses it")

    world = World.of()
    world.database = Refusing()
    outcome, acknowledged = world.run(body())
    assert isinstance(outcome, DeadLettered)
    assert acknowledged
    assert json.loads(world.queue.dead[0][1])["reason"] == "permanent"


def test_i27_a_job_with_a_lock_gets_one_fencing_number_an_attempt() -> None:
    numbers: list[int] = []

    def handler(payload: Note, work: UnitOfWork) -> object:
        numbers.extend([work.fencing_number(), work.fencing_number()])
        if work.attempt == 1:
            raise TimeoutError
        return None

    world = World.of(handler)
    world.run(body())
    world.clock.pass_(timedelta(minutes=6))
    world.run(body())
    assert numbers == [1, 1, 2, 2]


def test_a_job_without_a_lock_has_no_fencing_number() -> None:
    world = World.of(lambda payload, work: work.fencing_number(), lock=None)
    outcome, _ = world.run(body())
    assert isinstance(outcome, Retried)
    assert "declares no `lock`" in outcome.failure.error


def test_i35_several_locks_are_taken_in_one_order_and_given_back_together() -> None:
    taken: list[str] = []

    def handler(payload: Note, work: UnitOfWork) -> object:
        taken.extend(lease.want.key for lease in work.guards if isinstance(lease, Lease))
        return None

    world = World.of(handler, lock=lambda payload: ("b", "a", "b"))
    assert world.run(body())[0] == Completed(1)
    assert taken == ["a", "b"]
    assert world.cache.leases == {}


def test_a_job_that_gets_only_some_of_its_locks_gives_them_back_and_waits() -> None:
    world = World.of(lock=lambda payload: ("a", "b"))
    acquired(world.cache, "b", "somebody", timedelta(seconds=30))
    outcome, _ = world.run(body())
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.CONTENDED
    assert set(world.cache.leases) == {"b"}


def test_r1_1_a_key_is_unique_for_ever_or_only_while_its_job_is_active() -> None:
    for unique, expected in ((Unique.FOR_EVER, Duplicate("completed")), (Unique.WHILE_ACTIVE, Completed(1))):
        world = World.of(unique=unique)
        first = body(job_id="a", enqueued_at=START.isoformat())
        assert world.execute(first) == Completed(1)
        world.clock.pass_(timedelta(minutes=1))
        second = body(job_id="b", enqueued_at=world.clock.now().isoformat())
        assert world.execute(second) == expected
        assert world.execute(first) == Duplicate("completed")
        assert world.execute(second) == Duplicate("completed")
