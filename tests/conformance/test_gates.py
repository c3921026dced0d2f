"""What every store of gates promises: the twin in memory, a real Valkey, and one in cluster mode as the functions' user."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.memory.gates import MemoryGates
from shared.errors import DeclarationError
from shared.gate import CircuitBreaker, Gate, GateState, RetryBudget, Turned
from shared.rate import Rate
from tests.conformance.conftest import GatesInTime, connection_to
from tests.world import FakeClock

if TYPE_CHECKING:
    from shared.gate import TurnedAway

fresh = itertools.count()
SECOND = timedelta(seconds=1)
NO_WAIT = timedelta(0)
CALL = timedelta(seconds=10)
BREAKER = CircuitBreaker(3, timedelta(seconds=30), timedelta(minutes=2), timedelta(seconds=60))
FAST = Rate(100, burst=100)
OPEN_AT_ONCE = CircuitBreaker(1, timedelta(seconds=30), timedelta(minutes=2), timedelta(seconds=60))


def gate(**bounds: Any) -> Gate:
    return Gate(f"dependency-{next(fresh)}", CALL, **bounds)


class Caller:
    """Calls through a gate, each call under a name of its own."""

    def __init__(self, gates: Any, of: Gate) -> None:
        self.gates, self.gate = gates, of
        self.number = itertools.count()

    def enters(self, *, is_retry: bool = False) -> str | TurnedAway:
        token = f"call-{next(self.number)}"
        answer = self.gates.enter(self.gate, token, is_retry=is_retry, patience=NO_WAIT)
        return token if answer == NO_WAIT else answer

    def call(self, *, served: bool | None) -> Any:
        token = self.enters()
        assert isinstance(token, str), token
        return self.gates.leave(self.gate, token, served=served)

    def is_open(self) -> bool:
        turned = self.enters()
        return not isinstance(turned, str) and turned.why is Turned.OPEN


def near(time: timedelta, expected: timedelta) -> bool:
    return abs(time - expected) <= timedelta(milliseconds=1)


def test_failures_in_a_row_open_it_for_everybody_and_a_success_between_them_does_not(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=BREAKER))
    for served in (False, False, True, False, False):
        assert caller.call(served=served).open_for == timedelta(0)
    health = caller.call(served=False)
    assert near(health.open_for, BREAKER.pause)
    turned: Any = Caller(gates, caller.gate).enters()
    assert turned.why is Turned.OPEN
    assert near(turned.wait, BREAKER.pause)


def test_after_the_pause_one_caller_looks_and_the_others_wait(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=OPEN_AT_ONCE))
    caller.call(served=False)
    gates.clock.pass_(BREAKER.pause)
    looking = caller.enters()
    assert isinstance(looking, str)
    turned: Any = caller.enters()
    assert (turned.why, near(turned.wait, caller.gate.held)) == (Turned.OPEN, True)


def test_a_look_in_vain_doubles_the_pause_up_to_the_longest(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=OPEN_AT_ONCE))
    pauses = []
    for _ in range(4):
        pauses.append(caller.call(served=False).open_for)
        gates.clock.pass_(pauses[-1])
    assert [round(pause / SECOND) for pause in pauses] == [30, 60, 120, 120]


def test_a_look_that_is_served_closes_it_and_all_come_back_at_a_growing_rate(gates: Any) -> None:
    caller = Caller(gates, gate(rate=Rate(10, burst=50), breaker=OPEN_AT_ONCE))
    caller.call(served=False)
    gates.clock.pass_(BREAKER.pause)
    assert caller.call(served=True).open_for == timedelta(0)
    assert gates.look(caller.gate).ramping
    let_in = []  # in each ten seconds
    for _ in range(7):
        number = 0
        for _ in range(200):
            token = caller.enters()
            if isinstance(token, str):
                number += 1
                gates.leave(caller.gate, token, served=True)
            gates.clock.pass_(SECOND / 20)
        let_in.append(number)
    assert let_in[0] <= 20
    assert all(later > earlier - 3 for earlier, later in itertools.pairwise(let_in))
    assert let_in[5] <= 100
    assert not gates.look(caller.gate).ramping


def test_one_that_looks_and_dies_is_followed_by_another(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=OPEN_AT_ONCE))
    caller.call(served=False)
    gates.clock.pass_(BREAKER.pause)
    assert isinstance(caller.enters(), str)
    gates.clock.pass_(caller.gate.held + SECOND)
    assert caller.call(served=True).open_for == timedelta(0)
    assert not caller.is_open()


def test_one_that_looks_and_makes_no_call_lets_another_look(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=OPEN_AT_ONCE))
    caller.call(served=False)
    gates.clock.pass_(BREAKER.pause)
    caller.call(served=None)
    assert isinstance(caller.enters(), str)


def test_a_call_from_before_it_opened_neither_closes_it_nor_prolongs_it(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=OPEN_AT_ONCE))
    old: Any = [caller.enters() for _ in range(2)]
    caller.call(served=False)
    gates.clock.pass_(SECOND)
    for token, served in zip(old, (True, False), strict=True):
        assert near(gates.leave(caller.gate, token, served=served).open_for, BREAKER.pause - SECOND)
    assert caller.is_open()


def test_what_opens_again_while_it_comes_back_pauses_for_longer(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=OPEN_AT_ONCE))
    caller.call(served=False)
    gates.clock.pass_(BREAKER.pause)
    caller.call(served=True)
    gates.clock.pass_(SECOND)
    assert near(caller.call(served=False).open_for, 2 * BREAKER.pause)


def test_what_has_come_back_whole_pauses_as_at_first(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=OPEN_AT_ONCE))
    caller.call(served=False)
    gates.clock.pass_(BREAKER.pause)
    caller.call(served=True)
    gates.clock.pass_(BREAKER.ramp)
    assert near(caller.call(served=False).open_for, BREAKER.pause)


def test_whoever_opens_it_is_told_so_and_nobody_else(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=CircuitBreaker(2, BREAKER.pause)))
    late: Any = caller.enters()
    assert [caller.call(served=False).opened for _ in range(2)] == [False, True]
    assert not gates.leave(caller.gate, late, served=False).opened
    gates.clock.pass_(BREAKER.pause)
    assert not caller.call(served=False).opened  # it was open before this look


def test_whoever_declares_no_breaker_is_not_told_of_one_that_another_has_opened(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=OPEN_AT_ONCE))
    caller.call(served=False)
    without = Caller(gates, replace(caller.gate, breaker=None))  # of another deploy; nobody would look and close it
    assert without.call(served=False).open_for == NO_WAIT
    assert caller.is_open()


def test_however_many_looks_were_in_vain_the_pause_is_the_longest(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=OPEN_AT_ONCE))
    for _ in range(1100):  # 2.0**1024 is more than a float holds
        assert caller.call(served=False).open_for <= BREAKER.longest_pause
        gates.clock.pass_(BREAKER.longest_pause)


def test_whoever_leaves_is_told_how_long_ago_the_youngest_call_that_was_served_began(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=BREAKER))
    assert caller.call(served=False).served is None
    old: Any = caller.enters()
    gates.clock.pass_(2 * SECOND)
    young: Any = caller.enters()
    gates.clock.pass_(SECOND)
    for token in (young, old):
        gates.leave(caller.gate, token, served=True)
    gates.clock.pass_(3 * SECOND)
    assert near(caller.call(served=False).served, 4 * SECOND)


def test_a_rate_holds_over_all_callers_and_tells_the_wait(gates: Any) -> None:
    one = gate(rate=Rate(2, burst=3))
    callers = [Caller(gates, one) for _ in range(3)]
    for number, caller in enumerate(callers):
        assert gates.enter(one, f"of-{number}", is_retry=False, patience=NO_WAIT) == NO_WAIT, caller
    turned: Any = gates.enter(one, "late", is_retry=False, patience=NO_WAIT)
    assert (turned.why, near(turned.wait, SECOND / 2)) == (Turned.RATE, True)
    gates.clock.pass_(turned.wait + timedelta(milliseconds=1))
    assert gates.enter(one, "late", is_retry=False, patience=NO_WAIT) == NO_WAIT


def test_one_for_which_there_is_room_soon_has_its_place_and_waits_for_it(gates: Any) -> None:
    one = gate(rate=Rate(2))
    waits = [gates.enter(one, f"c{number}", is_retry=False, patience=SECOND) for number in range(3)]
    assert [round(wait / SECOND, 3) for wait in waits] == [0, 0.5, 1]
    turned = gates.enter(one, "late", is_retry=False, patience=SECOND)
    assert (turned.why, near(turned.wait, 1.5 * SECOND)) == (Turned.RATE, True)
    assert near(gates.enter(one, "c2", is_retry=False, patience=SECOND), SECOND)  # its reply was lost


def test_no_more_calls_are_under_way_than_declared(gates: Any) -> None:
    caller = Caller(gates, gate(concurrency=2))
    first: Any = caller.enters()
    caller.enters()
    turned: Any = caller.enters()
    assert turned.why is Turned.CONCURRENCY
    gates.leave(caller.gate, first, served=False)
    assert isinstance(caller.enters(), str)


def test_a_call_whose_process_died_makes_room_after_its_longest_time(gates: Any) -> None:
    caller = Caller(gates, gate(concurrency=1))
    caller.enters()
    gates.clock.pass_(caller.gate.held + SECOND)
    assert isinstance(caller.enters(), str)


def test_retries_are_a_share_of_the_first_tries_and_a_few(gates: Any) -> None:
    caller = Caller(gates, gate(retries=RetryBudget(share=0.5, per_minute=6, burst=2)))
    assert [isinstance(caller.enters(is_retry=True), str) for _ in range(3)] == [True, True, False]
    turned: Any = caller.enters(is_retry=True)
    assert (turned.why, near(turned.wait, 10 * SECOND)) == (Turned.RETRIES, True)
    assert isinstance(caller.enters(), str)  # a first try needs no budget
    caller.enters()
    assert isinstance(caller.enters(is_retry=True), str)
    assert not isinstance(caller.enters(is_retry=True), str)
    gates.clock.pass_(timedelta(hours=1))
    assert [isinstance(caller.enters(is_retry=True), str) for _ in range(3)] == [True, True, False]


def test_what_is_turned_away_counts_against_no_bound(gates: Any) -> None:
    caller = Caller(gates, gate(rate=Rate(1, burst=2), concurrency=1, retries=RetryBudget(0, 1, 1)))
    token: Any = caller.enters()
    for _ in range(3):
        turned: Any = caller.enters(is_retry=True)
        assert turned.why is Turned.CONCURRENCY
    gates.leave(caller.gate, token, served=True)
    assert isinstance(caller.enters(is_retry=True), str)


def test_whose_reply_was_lost_is_in_and_whoever_left_twice_left_once(gates: Any) -> None:
    one = gate(rate=Rate(1), concurrency=1, breaker=CircuitBreaker(2))
    for _ in range(2):
        assert gates.enter(one, "mine", is_retry=False, patience=NO_WAIT) == NO_WAIT
    for _ in range(3):
        assert gates.leave(one, "mine", served=False).open_for == timedelta(0)
    assert gates.look(one).failures == 1


def test_one_gate_takes_nothing_from_another(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=OPEN_AT_ONCE))
    caller.call(served=False)
    assert not Caller(gates, gate(rate=FAST, breaker=OPEN_AT_ONCE)).is_open()


def test_how_it_stands_is_told(gates: Any) -> None:
    caller = Caller(gates, gate(rate=FAST, breaker=OPEN_AT_ONCE))
    assert gates.look(caller.gate) == GateState()
    caller.enters()
    caller.call(served=False)
    gates.clock.pass_(SECOND)
    state = gates.look(caller.gate)
    assert near(state.open_for, BREAKER.pause - SECOND)
    assert near(state.down_for, SECOND)
    assert (state.calls, state.failures, state.ramping) == (1, 0, False)


@pytest.mark.parametrize("server", ["valkey", "cluster"])
@pytest.mark.parametrize("seed", range(6))
def test_the_twin_and_the_server_answer_alike(request: pytest.FixtureRequest, server: str, seed: int) -> None:
    request.param = server
    random, clock = Random(seed), FakeClock()  # noqa: S311 - repeatable
    one = gate(
        rate=random.choice((Rate(5, burst=8), Rate(0.5), FAST)),
        concurrency=random.choice((None, 1, 4)),
        retries=random.choice((None, RetryBudget(0.3, 20, 3))),
        breaker=random.choice((None, BREAKER, OPEN_AT_ONCE)),
    )
    stores = MemoryGates(clock), GatesInTime(connection_to(request), clock)
    inside: list[str] = []
    for step in range(250):
        clock.pass_(timedelta(milliseconds=random.choice((1, 40, 700, 16_000))))
        if inside and random.random() < 0.5:
            token = inside.pop(random.randrange(len(inside)))
            served = random.choice((True, False, False, None))
            answers: list[Any] = [store.leave(one, token, served=served) for store in stores]
        else:
            token, is_retry = f"call-{step}", random.random() < 0.3
            patience = random.choice((NO_WAIT, SECOND))
            answers = [store.enter(one, token, is_retry=is_retry, patience=patience) for store in stores]
            if isinstance(answers[0], timedelta):
                inside.append(token)
        assert alike(*answers), (step, answers)
        assert alike(*(store.look(one) for store in stores)), step


def alike(twin: Any, server: Any) -> bool:
    """Equal, but for the fractions of a microsecond that a server rounds."""
    if isinstance(twin, timedelta) and isinstance(server, timedelta):
        return abs(twin - server) < timedelta(milliseconds=1)
    if hasattr(twin, "__dataclass_fields__"):
        return type(twin) is type(server) and all(
            alike(getattr(twin, name), getattr(server, name)) for name in twin.__dataclass_fields__
        )
    return bool(twin == server)


@pytest.mark.parametrize(
    ("declared", "advice"),
    [
        (lambda: CircuitBreaker(failures=0), "give 1 or more"),
        (lambda: CircuitBreaker(pause=timedelta(0)), "give 0 < pause"),
        (lambda: CircuitBreaker(longest_pause=timedelta(seconds=1)), "give 0 < pause"),
        (lambda: CircuitBreaker(longest_pause=timedelta(hours=2)), "give 0 < pause"),
        (lambda: RetryBudget(share=1.1), "give a share"),
        (lambda: RetryBudget(per_minute=0), "give a share"),
        (lambda: RetryBudget(burst=0), "give a share"),
        (lambda: gate(concurrency=0), "must be 1 to"),
        (lambda: gate(breaker=CircuitBreaker()), "give `rate`"),
    ],
)
def test_bounds_that_cannot_be_kept_are_refused(declared: Any, advice: str) -> None:
    with pytest.raises(DeclarationError, match=advice):
        declared()
