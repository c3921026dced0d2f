"""How a job goes through the gates of its dependencies: what waits, what costs an attempt, what is never called twice."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.memory.gates import MemoryGates
from shared.commit import Reconciliation
from shared.dependency import Dependency, Keys, Reply, WithoutGate
from shared.errors import (
    Ambiguous,
    CacheUnavailable,
    DeclarationError,
    OutcomeUnknown,
    SettingsError,
    StoreUnavailable,
    Unavailable,
    Unrepeatable,
)
from shared.gate import CircuitBreaker, RetryBudget
from shared.job import job
from shared.job_record import Status
from shared.outcome import Because, Completed, DeadLettered, Postponed, Retried, Unknown
from shared.payload import Payload
from shared.rate import Rate
from shared.work.way import BELIEVED
from shared.worker import Worker
from tests.dying import Killed
from tests.world import World, body, note_job

if TYPE_CHECKING:
    from shared.unit_of_work import UnitOfWork

SECOND = timedelta(seconds=1)
DOWN = Unavailable("503", dependency="shop")
FAST = Rate(1000, burst=1000)
PAUSE = timedelta(seconds=30)


class Shop:
    """An outside system as a test wants it; and a worker whose one job calls it."""

    def __init__(self, method: str = "POST", *, times: int = 1, **bounds: Any) -> None:
        self.answers: list[Exception | None] = []
        self.usual: Exception | None = None
        self.calls = 0
        dependency = Dependency("shop", timeout=5 * SECOND, **bounds)

        def buy(_payload: Any, work: UnitOfWork) -> str:
            for _ in range(times):
                work.call(dependency, method, "/things")
            return "bought"

        self.dependency = dependency
        self.world = World(Worker("notes", jobs=(note_job(buy, lock=None, uses=(dependency,)),), max_concurrency=2))
        self.world.transport.answer = self.answer

    def answer(self, *_request: object) -> Reply:
        self.calls += 1
        error = self.answers.pop(0) if self.answers else self.usual
        if error is not None:
            raise error
        return Reply(200, {})

    def run(self, key: str = "k1", **more: Any) -> Any:
        outcome, _ = self.world.run(body(idempotency_key=key), **more)
        return outcome

    def later(self, outcome: Any) -> None:
        self.world.clock.pass_(outcome.after + SECOND)

    def record(self, key: str = "k1") -> Any:
        (view,) = [v for v in self.world.database.records.values() if v.names["idempotency_key"] == key]
        return view


def test_a_process_that_knows_of_an_open_breaker_makes_no_claim() -> None:
    shop = Shop(rate=FAST, breaker=CircuitBreaker(2, PAUSE))
    shop.usual = DOWN
    runtime = shop.world.runtime  # one process
    outcomes: list[Any] = []
    for number in range(3):
        delivery = shop.world.delivery(body(idempotency_key=f"k{number}"))
        outcomes.append(runtime.execution.execute(delivery, shop.world.clock.now() + timedelta(minutes=1)))
    assert [outcome.because for outcome in outcomes] == [Because.DEPENDENCY_DOWN] * 2 + [Because.DEPENDENCY_OPEN]
    assert shop.calls == 2
    assert outcomes[2].after >= BELIEVED
    assert "k2" not in {view.names["idempotency_key"] for view in shop.world.database.records.values()}


def test_a_process_that_does_not_know_yet_is_turned_away_at_the_call_and_gives_its_attempt_back() -> None:
    shop = Shop(rate=FAST, breaker=CircuitBreaker(1, PAUSE))
    shop.usual = DOWN
    shop.run("first")
    outcome = shop.run("second")  # by another process
    assert (outcome.because, shop.calls, shop.record("second").attempts) == (Because.DEPENDENCY_OPEN, 1, 0)
    assert outcome.after > PAUSE


def test_an_outage_costs_no_attempt_however_long_it_is() -> None:
    shop = Shop(rate=FAST, breaker=CircuitBreaker(3, PAUSE))
    shop.usual = DOWN
    for _ in range(50):
        outcome = shop.run()
        assert isinstance(outcome, Postponed)
        shop.later(outcome)
    shop.usual = None
    while not isinstance(outcome := shop.run(), Completed):
        shop.later(outcome)
    assert outcome.attempt == 1
    assert shop.record().first_failure.dependency == "shop"


def test_a_job_that_fails_where_others_are_served_spends_its_attempts_and_dies() -> None:
    shop = Shop(rate=FAST, breaker=CircuitBreaker())
    ends = []
    for number in range(5):
        shop.answers = [DOWN]
        outcome = shop.run("poison")
        ends.append(type(outcome))
        if isinstance(outcome, DeadLettered):
            break
        shop.later(outcome)
        assert isinstance(shop.run(f"other-{number}"), Completed)
        shop.world.clock.pass_(SECOND)
    # Whose fault the first failure is nobody can know.
    assert ends == [Postponed, Retried, Retried, DeadLettered]
    assert outcome.attempts == 3


def test_a_job_whose_every_failure_opens_the_breaker_dies_all_the_same_where_others_are_served() -> None:
    shop = Shop(rate=FAST, breaker=CircuitBreaker(1, PAUSE))
    for number in range(5):
        shop.answers = [DOWN]
        outcome = shop.run("poison")
        if isinstance(outcome, DeadLettered):
            break
        shop.world.clock.pass_(timedelta(minutes=10))
        assert isinstance(shop.run(f"other-{number}"), Completed)
        shop.world.clock.pass_(timedelta(minutes=10))
    assert isinstance(outcome, DeadLettered)


def test_a_job_that_fails_although_its_later_call_was_served_spends_its_attempts_and_dies() -> None:
    shop = Shop(rate=FAST, breaker=CircuitBreaker())

    def buy(_payload: Any, work: UnitOfWork) -> None:
        try:
            work.call(shop.dependency, "POST", "/things")
        except Unavailable as error:
            work.call(shop.dependency, "GET", "/things")
            raise Unavailable(str(error), dependency="shop") from error

    shop.world.worker = Worker("notes", jobs=(note_job(buy, lock=None, uses=(shop.dependency,)),))
    for _ in range(3):
        shop.answers = [DOWN]
        outcome = shop.run()
        if isinstance(outcome, DeadLettered):
            break
        shop.later(outcome)
    assert isinstance(outcome, DeadLettered)


def test_without_a_gate_a_failed_call_spends_an_attempt() -> None:
    shop = Shop()
    shop.usual = DOWN
    assert isinstance(shop.run(), Retried)


def test_a_short_wait_for_the_rate_is_spent_here() -> None:
    shop = Shop(rate=Rate(2))
    for number in range(3):
        assert isinstance(shop.run(f"k{number}"), Completed)
    assert [round(slept, 2) for slept in shop.world.clock.slept] == [0.5, 0.5]


def test_a_long_wait_for_the_rate_is_spent_on_the_queue_and_costs_nothing() -> None:
    shop = Shop(rate=Rate(1 / 60))
    shop.run("first")
    outcome = shop.run("second")
    assert outcome.because is Because.DEPENDENCY_LIMITED
    assert outcome.after > 58 * SECOND
    assert (shop.record("second").attempts, shop.world.clock.slept) == (0, [])


def test_retries_beyond_their_budget_wait_and_first_tries_go_on() -> None:
    shop = Shop(retries=RetryBudget(share=0, per_minute=1, burst=1))
    for key in ("a", "b"):
        shop.answers = [DOWN]
        shop.run(key)
        shop.run(f"served-{key}")
    shop.world.clock.pass_(timedelta(seconds=30))
    assert isinstance(shop.run("a"), Completed)
    outcome = shop.run("b")
    assert (outcome.because, shop.record("b").attempts) == (Because.DEPENDENCY_LIMITED, 0)
    assert isinstance(shop.run("fresh"), Completed)


def test_an_attempt_counts_once_for_the_retry_budget_however_many_calls_it_makes() -> None:
    """One that makes more calls than the budget saves up would never end, and would take all of it with each attempt."""
    shop = Shop("GET", times=30, retries=RetryBudget(share=0.5, per_minute=1, burst=2))
    for key in ("k1", "k2", "k3", "k4", "k5"):
        shop.answers = [DOWN]
        shop.run(key)
        shop.run(f"served-{key}")
    shop.world.clock.pass_(timedelta(seconds=30))
    assert [type(shop.run(key)) for key in ("k1", "k2", "k3")] == [Completed, Completed, Postponed]
    shop.run("first-1")  # a first try adds its share, once for its thirty calls
    assert type(shop.run("k4")) is Postponed
    shop.run("first-2")
    assert type(shop.run("k5")) is Completed


def test_what_waits_for_an_open_breaker_does_not_come_back_in_one_moment() -> None:
    shop = Shop(rate=FAST, breaker=CircuitBreaker(1, PAUSE))
    postponing = shop.world.runtime.execution.postponing
    delivery = shop.world.delivery(body(), system={"ApproximateReceiveCount": "5"})
    waits = {postponing.later(delivery, Because.DEPENDENCY_OPEN, PAUSE).after // SECOND for _ in range(200)}
    assert min(waits) >= 60
    assert len(waits) > 25


class GoneGates:
    """Gates of a Redis that is gone."""

    def enter(self, *_: Any, **__: Any) -> Any:
        raise CacheUnavailable

    leave = look = enter


def test_without_redis_each_process_keeps_its_part_of_the_rate() -> None:
    shop = Shop(rate=Rate(1 / 60, burst=4))
    shop.world.gates = GoneGates()
    runtime = shop.world.runtime
    with runtime.keeper:
        outcomes = [
            runtime.execution.execute(
                shop.world.delivery(body(idempotency_key=f"k{number}")), shop.world.clock.now() + timedelta(minutes=1)
            )
            for number in range(3)
        ]
    assert [type(outcome) for outcome in outcomes] == [Completed, Completed, Postponed]  # half of the burst of 4


@pytest.mark.parametrize("rate", [Rate(1 / 86_000), Rate(10, burst=3), Rate(10_000, burst=500)])
@pytest.mark.parametrize("processes", [1, 7, 1000])
def test_each_part_of_the_bounds_is_one_that_can_be_kept(rate: Rate, processes: int) -> None:
    whole = Dependency(
        "shop", timeout=5 * SECOND, rate=rate, concurrency=3, retries=RetryBudget(burst=2), breaker=CircuitBreaker()
    ).gate
    assert whole is not None
    part = whole.shared_by(processes)
    assert part.rate is not None
    assert part.rate.per_second <= max(rate.per_second / processes, part.rate.burst / 86_400)
    assert part.concurrency == max(1, 3 // processes)
    assert part.retries is not None
    assert part.retries.burst >= 1


def test_without_redis_nobody_calls_where_that_is_declared() -> None:
    shop = Shop(rate=FAST, without_redis=WithoutGate.POSTPONE)
    shop.world.gates = GoneGates()
    outcome = shop.run()
    assert (outcome.because, shop.calls, shop.record().attempts) == (Because.DEPENDENCY_LIMITED, 0, 0)


def test_a_call_that_cannot_leave_its_gate_was_made_all_the_same() -> None:
    class Forgetful(MemoryGates):
        leave = GoneGates.leave

    shop = Shop(rate=FAST)
    shop.world.gates = Forgetful(shop.world.clock)
    assert isinstance(shop.run(), Completed)
    shop.usual = DOWN
    assert isinstance(shop.run("other"), Retried)  # nobody can tell whose fault it is


def test_a_database_that_does_not_answer_says_nothing_about_the_dependency() -> None:
    shop = Shop(rate=FAST, breaker=CircuitBreaker(1, PAUSE), keys=Keys.NOT_TAKEN)

    def silent(*_: Any) -> bool:
        message = "no answer"
        raise StoreUnavailable(message)

    shop.world.database.intend = silent
    assert shop.run().because is Because.STORE_UNAVAILABLE
    assert shop.world.gates.look(shop.dependency.gate).down_for is None


def test_a_reading_call_is_repeated_whatever_keys_are_taken() -> None:
    shop = Shop("GET", keys=Keys.NOT_TAKEN)
    shop.answers = [Ambiguous("no answer", dependency="shop")]
    outcome = shop.run()
    assert isinstance(outcome, Retried)
    shop.later(outcome)
    assert isinstance(shop.run(), Completed)


def test_i21_a_call_without_a_key_that_got_no_answer_is_not_made_again() -> None:
    shop = Shop(keys=Keys.NOT_TAKEN)
    shop.answers = [Ambiguous("no answer", dependency="shop")]
    assert isinstance(shop.run(), Unknown)
    assert (shop.record().status, shop.calls) == (Status.UNKNOWN, 1)
    shop.world.clock.pass_(timedelta(hours=1))
    shop.run()
    assert shop.calls == 1


def test_i21_a_take_over_that_finds_an_intent_makes_no_call() -> None:
    shop = Shop(keys=Keys.NOT_TAKEN)

    def dies(*_: object) -> Reply:
        shop.calls += 1
        raise Killed

    shop.world.transport.answer = dies
    with pytest.raises(Killed):
        shop.run()
    shop.world.transport.answer = shop.answer
    shop.world.clock.pass_(timedelta(minutes=2))
    assert isinstance(shop.run(), Unknown)
    assert shop.calls == 1


def test_a_call_without_a_key_that_was_not_done_is_made_again() -> None:
    shop = Shop(keys=Keys.NOT_TAKEN)
    shop.answers = [DOWN]
    outcome = shop.run()
    assert isinstance(outcome, Retried)
    shop.later(outcome)
    assert isinstance(shop.run(), Completed)
    assert shop.calls == 2


def two_calls(*, catches: bool = False) -> Shop:
    """A job that makes two calls that cannot be repeated, the second perhaps because the first failed."""
    shop = Shop(keys=Keys.NOT_TAKEN)

    def buy(_payload: Any, work: UnitOfWork) -> None:
        with contextlib.suppress(Ambiguous) if catches else contextlib.nullcontext():
            work.call(shop.dependency, "POST", "/first")
        work.call(shop.dependency, "POST", "/second")

    shop.world.worker = Worker("notes", jobs=(note_job(buy, lock=None, uses=(shop.dependency,)),))
    return shop


def test_i21_a_call_that_was_not_done_takes_back_no_intent_of_one_that_was() -> None:
    shop = two_calls()
    shop.answers = [None, DOWN]
    shop.later(shop.run())
    assert isinstance(shop.run(), Unknown)
    assert shop.calls == 2


def test_i21_an_attempt_whose_call_got_no_answer_makes_no_other_whatever_its_author_catches() -> None:
    shop = two_calls(catches=True)
    shop.answers = [Ambiguous("no answer", dependency="shop")]
    assert isinstance(shop.run(), Unknown)
    assert shop.calls == 1


def test_two_calls_that_are_answered_are_both_made() -> None:
    shop = two_calls()
    assert isinstance(shop.run(), Completed)
    assert shop.calls == 2


def test_a_call_that_does_not_know_its_address_waits_for_the_deploy_and_leaves_no_intent() -> None:
    shop = Shop(keys=Keys.NOT_TAKEN)
    shop.answers = [SettingsError("set the base URL")]
    outcome = shop.run()
    assert outcome.because is Because.MISCONFIGURED
    shop.later(outcome)
    assert isinstance(shop.run(), Completed)


def test_an_intent_whose_reply_was_lost_is_taken_back_since_nothing_was_sent() -> None:
    shop = Shop(keys=Keys.NOT_TAKEN)
    database = shop.world.database

    def lost(hold: Any, dependency: str) -> bool:
        del database.intend
        database.intend(hold, dependency)
        message = "no answer"
        raise StoreUnavailable(message)

    database.intend = lost
    outcome = shop.run()
    assert outcome.because is Because.STORE_UNAVAILABLE
    shop.later(outcome)
    assert isinstance(shop.run(), Completed)


def test_a_reconciling_job_may_let_it_run_again() -> None:
    shop = Shop(keys=Keys.NOT_TAKEN)
    shop.answers = [Ambiguous("no answer", dependency="shop")]
    shop.run()
    database, record = shop.world.database, shop.record().record
    database._settle(Reconciliation(record, Status.RETRYING), (), shop.world.clock.now())
    assert isinstance(shop.run(), Completed)
    assert shop.calls == 2


class Ask(Payload):
    """Ask what happened."""


@job("ask", timeout=10 * SECOND, max_latency=60 * SECOND)
def ask(payload: Ask, work: UnitOfWork) -> None:
    """Never run here."""
    del payload, work


def aged(method: str) -> tuple[Shop, list[Any]]:
    """A job whose first attempt failed longer ago than the shop remembers keys."""
    shop = Shop(method, key_lifetime=timedelta(hours=1))
    shop.answers = [DOWN]
    outcomes = [shop.run()]
    shop.world.clock.pass_(timedelta(hours=2))
    outcomes.append(shop.run())
    return shop, outcomes


def test_a_key_that_the_other_side_may_have_forgotten_is_not_used_again() -> None:
    shop, (_, outcome) = aged("POST")
    assert isinstance(outcome, Retried)
    assert (shop.calls, outcome.failure.dependency) == (1, "shop")


def test_reading_needs_no_key() -> None:
    shop, (_, outcome) = aged("GET")
    assert (shop.calls, type(outcome)) == (2, Completed)


def test_a_job_whose_reconciliation_found_nothing_uses_its_key_as_a_new_one() -> None:
    shop, _ = aged("POST")
    shop.world.database._settle(Reconciliation(shop.record().record, Status.RETRYING), (), shop.world.clock.now())
    shop.world.clock.pass_(timedelta(minutes=1))
    assert isinstance(shop.run(), Completed)
    assert shop.calls == 2


def test_the_author_may_turn_such_a_call_into_a_reconciliation() -> None:
    shop = Shop()

    def buy(_payload: Any, work: UnitOfWork) -> None:
        try:
            work.call(dependency, "POST", "/")
        except Unrepeatable as error:
            raise OutcomeUnknown(str(error), reconcile=ask.message(Ask(), "ask")) from error

    dependency = Dependency("shop", timeout=5 * SECOND, keys=Keys.NOT_TAKEN)
    shop.world.worker = Worker("notes", jobs=(note_job(buy, lock=None, uses=(dependency,)),))
    shop.answers = [Ambiguous("no answer", dependency="shop")]
    assert isinstance(shop.run(), Unknown)
    (posting,) = shop.world.database.outbox.values()
    assert '"ask"' in posting.body


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"keys": Keys.NOT_TAKEN, "key_lifetime": timedelta(hours=1)}, "takes keys"),
        ({"key_lifetime": timedelta(seconds=10)}, "longer than two calls"),
        ({"breaker": CircuitBreaker()}, "give `rate`"),
        ({"concurrency": 0}, "must be 1 to"),
    ],
)
def test_what_contradicts_itself_is_refused(options: dict[str, Any], advice: str) -> None:
    with pytest.raises(DeclarationError, match=advice):
        Dependency("shop", timeout=5 * SECOND, **options)


def test_at_another_pace_every_duration_follows_and_rates_go_the_other_way() -> None:
    slow = Dependency(
        "shop",
        timeout=10 * SECOND,
        rate=Rate(5, burst=7),
        concurrency=3,
        retries=RetryBudget(per_minute=10),
        breaker=CircuitBreaker(pause=PAUSE),
        key_lifetime=timedelta(hours=10),
    ).at_pace(0.1)
    assert (slow.rate, slow.concurrency, slow.key_lifetime) == (Rate(50, burst=7), 3, timedelta(hours=1))
    assert slow.breaker is not None and slow.breaker.pause == 3 * SECOND  # noqa: PT018 - for the types
    assert slow.retries is not None and slow.retries.per_minute == 100  # noqa: PT018 - for the types
