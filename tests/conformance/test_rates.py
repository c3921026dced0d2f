"""What every store of rates promises: the twin in memory, a real Valkey, and one in cluster mode as the functions' user."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.memory.rates import MemoryRates
from shared.backends.redis.keys import rate_key
from shared.backends.redis.lines import Command
from shared.errors import DeclarationError
from shared.rate import Rate
from tests.world import FakeClock

if TYPE_CHECKING:
    from shared.backends.redis.rates import RedisRates

fresh = itertools.count()
NONE = timedelta(0)
HOURLY = Rate(1 / 3600, burst=3)  # so slow that no test makes up for one
HOUR = timedelta(hours=1)


def name() -> str:
    return f"owner/{next(fresh)}{{}}é"


def test_i44_a_burst_is_let_through_and_the_next_is_told_how_long_to_wait(rates: Any) -> None:
    owner = name()
    assert [rates.take(owner, HOURLY) for _ in range(3)] == [NONE] * 3
    assert HOUR / 2 < rates.take(owner, HOURLY) <= HOUR


def test_i44_what_is_refused_is_not_counted(rates: Any) -> None:
    owner = name()
    for _ in range(3):
        rates.take(owner, HOURLY)
    waits = [rates.take(owner, HOURLY) for _ in range(5)]
    assert waits == sorted(waits, reverse=True)
    assert waits[0] <= HOUR


def test_i43_one_name_takes_nothing_from_another(rates: Any) -> None:
    greedy, modest = name(), name()
    for _ in range(10):
        rates.take(greedy, HOURLY)
    assert rates.take(modest, HOURLY) == NONE


def test_whoever_waits_as_long_as_told_is_let_through(rates: Any) -> None:
    owner, rate = name(), Rate(5)
    while not (wait := rates.take(owner, rate)):
        pass  # a busy machine may come late
    time.sleep(wait.total_seconds())
    assert rates.take(owner, rate) == NONE


def test_of_many_at_once_no_more_than_the_burst_are_let_through(rates: Any) -> None:
    owner = name()
    with ThreadPoolExecutor(8) as pool:
        waits = list(pool.map(lambda _: rates.take(owner, HOURLY), range(24)))
    assert waits.count(NONE) == 3


def test_a_smaller_burst_counts_from_the_next_call_on(rates: Any) -> None:
    owner = name()
    for _ in range(3):
        rates.take(owner, HOURLY)
    assert rates.take(owner, Rate(1 / 3600, burst=1)) <= HOUR


def test_a_rest_fills_the_burst_and_no_more() -> None:
    clock = FakeClock()
    rates, rate = MemoryRates(clock), Rate(2, burst=4)
    for _ in range(4):
        assert rates.take("a", rate) == NONE
    clock.pass_(timedelta(seconds=1))
    assert [rates.take("a", rate) == NONE for _ in range(3)] == [True, True, False]
    clock.pass_(timedelta(hours=1))
    assert [rates.take("a", rate) == NONE for _ in range(5)] == [True] * 4 + [False]


def test_a_name_is_forgotten_when_its_burst_is_whole_again(served_rates: RedisRates) -> None:
    owner = name()
    served_rates.take(owner, HOURLY)
    served_rates.take(owner, HOURLY)
    left: Any = served_rates.connection.send(Command.script(PTTL, rate_key(owner)))
    assert 1 < left / HOUR.total_seconds() / 1000 <= 2


def test_a_name_that_is_not_forgotten_yet_has_made_up_for_a_burst_and_no_more(served_rates: RedisRates) -> None:
    owner = name()
    past = str(int((time.time() - 10 * HOUR.total_seconds()) * 1_000_000))
    served_rates.connection.send(Command.script(WRITE, rate_key(owner), past))
    assert [served_rates.take(owner, HOURLY) == NONE for _ in range(4)] == [True, True, True, False]


def test_what_was_written_before_the_servers_clock_was_set_back_counts_as_a_burst(
    served_rates: RedisRates,
) -> None:
    owner = name()
    far = str(int((time.time() + 10 * HOUR.total_seconds()) * 1_000_000))
    served_rates.connection.send(Command.script(WRITE, rate_key(owner), far))
    assert NONE < served_rates.take(owner, HOURLY) <= HOUR


PTTL = "return redis.call('PTTL', KEYS[1])"
WRITE = "return redis.call('SET', KEYS[1], ARGV[1], 'PX', 99000)"


@pytest.mark.parametrize(
    ("per_second", "burst"), [(0, 1), (-1, 1), (10_001, 1), (1, 0), (1 / 86_400, 2), (float("nan"), 1)]
)
def test_a_rate_that_lets_nothing_through_or_is_kept_for_ever_is_refused(per_second: float, burst: int) -> None:
    with pytest.raises(DeclarationError, match="give more than 0"):
        Rate(per_second, burst)
