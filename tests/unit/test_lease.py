"""Leases: validity by the monotonic clock, renewal while healthy, loss told and final."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from shared.backends.memory.cache import MemoryCache
from shared.clock import SystemClock
from shared.errors import CacheUnavailable, LeaseLost
from shared.lease import Leases, Want, valid_until
from shared.pipeline.keeper import Keeper
from shared.telemetry import Silent
from tests.world import FakeClock, acquired

TTL = timedelta(seconds=30)


class Flaky(MemoryCache):
    """A cache whose answers can be lost."""

    fail = False

    def renew(self, key: str, token: str, ttl: timedelta) -> bool:
        if self.fail:
            raise CacheUnavailable
        return super().renew(key, token, ttl)

    def finish(self, tags: Any, leases: Any) -> None:
        if self.fail:
            raise CacheUnavailable
        super().finish(tags, leases)


class Renewing:
    """A store that only renews."""

    def __init__(self, renew: Any) -> None:
        self.renew = renew


def leases(clock: FakeClock) -> tuple[Leases, Flaky]:
    cache = Flaky(clock)
    return Leases(cache, Keeper(Silent()), clock), cache


def test_i31_validity_counts_from_before_the_request_less_drift() -> None:
    assert valid_until(100.0, TTL) == pytest.approx(100 + 30 * 0.99 - 0.002)

    clock = FakeClock()

    class Slow(MemoryCache):
        def acquire_all(self, wants: Any) -> list[bool]:
            clock.pass_(timedelta(seconds=31))
            return super().acquire_all(wants)

    lease = Leases(Slow(clock), Keeper(Silent()), clock).take(Want("k", "t", TTL))
    assert lease is not None
    with pytest.raises(LeaseLost):
        lease.check()


def test_a_lease_is_renewed_when_a_third_has_passed_and_not_before() -> None:
    clock = FakeClock()
    kept, cache = leases(clock)
    lease = kept.take(Want("k", "t", TTL))
    assert lease is not None
    first = lease.valid_until
    clock.pass_(timedelta(seconds=5))
    assert 4 < kept.keeper.renew_due() < 6
    assert lease.valid_until == first
    clock.pass_(timedelta(seconds=6))
    kept.keeper.renew_due()
    assert lease.valid_until > first
    clock.pass_(timedelta(seconds=25))
    lease.check()
    assert not acquired(cache, "k", "other", TTL)


def test_lck_07_a_renewal_that_fails_leaves_the_lease_until_its_end_and_no_longer() -> None:
    clock = FakeClock()
    kept, cache = leases(clock)
    lease = kept.take(Want("k", "t", TTL))
    assert lease is not None
    cache.fail = True
    for _ in range(4):
        clock.pass_(timedelta(seconds=7))
        kept.keeper.renew_due()
    lease.check()
    clock.pass_(timedelta(seconds=2))
    with pytest.raises(LeaseLost):
        lease.check()
    cache.fail = False
    kept.keeper.renew_due()
    with pytest.raises(LeaseLost):  # lost is lost, also when Redis is back
        lease.check()


def test_a_lease_that_went_to_another_is_told_as_lost() -> None:
    clock = FakeClock()
    kept, cache = leases(clock)
    lease = kept.take(Want("k", "t", TTL))
    assert lease is not None
    cache.leases["k"] = ("other", 1e9)
    clock.pass_(timedelta(seconds=15))
    kept.keeper.renew_due()
    with pytest.raises(LeaseLost):
        lease.check()


def test_a_lease_whose_renewal_came_too_late_is_lost_although_it_was_renewed() -> None:
    clock = FakeClock()
    kept, cache = leases(clock)
    lease = kept.take(Want("k", "t", TTL))
    assert lease is not None
    renew = cache.renew

    def slow(key: str, token: str, ttl: timedelta) -> bool:
        renewed = renew(key, token, ttl)
        clock.pass_(timedelta(seconds=20))
        return renewed

    object.__setattr__(lease, "store", Renewing(slow))
    clock.pass_(timedelta(seconds=15))
    kept.keeper.renew_due()
    with pytest.raises(LeaseLost):  # for a while another might have had it
        lease.check()
    assert not kept.keeper.forget(lease)  # nor is it given back: that would cost an exchange and do nothing


def test_contention_gives_nothing() -> None:
    kept, cache = leases(FakeClock())
    acquired(cache, "k", "other", TTL)
    assert kept.take(Want("k", "t", TTL)) is None


def test_a_lease_is_given_back_once_and_a_failure_leaves_it_to_its_end() -> None:
    clock = FakeClock()
    kept, cache = leases(clock)
    lease = kept.take(Want("k", "t", TTL))
    assert lease is not None
    cache.fail = True
    kept.give_back([lease])
    cache.fail = False
    kept.give_back([lease])
    assert cache.leases["k"][0] == "t"
    clock.pass_(TTL)
    assert kept.take(Want("k", "t2", TTL)) is not None


def test_nothing_of_an_invocation_goes_on_after_it() -> None:
    clock = FakeClock()
    kept, _ = leases(clock)
    before = set(threading.enumerate())
    with kept.keeper:
        lease = kept.take(Want("k", "t", TTL))
        (renewing,) = set(threading.enumerate()) - before
    assert not renewing.is_alive()
    assert lease is not None
    with pytest.raises(LeaseLost):
        lease.check()


def test_the_end_of_an_invocation_does_not_wait_for_every_renewal() -> None:
    clock = SystemClock()
    asked = []

    class Slow(MemoryCache):
        def renew(self, key: str, token: str, ttl: timedelta) -> bool:
            asked.append(key)
            clock.sleep(0.4)
            return super().renew(key, token, ttl)

    kept = Leases(Slow(clock), Keeper(Silent()), clock)
    with kept.keeper:
        for number in range(10):
            kept.take(Want(f"k{number}", f"t{number}", timedelta(milliseconds=300)))
        clock.sleep(0.2)
        begun = clock.monotonic()
    assert clock.monotonic() - begun < 2  # all ten would take four seconds
    before = len(asked)
    clock.sleep(0.6)
    assert len(asked) <= before + 1  # and none begins afterwards


def test_the_thread_renews_a_lease_taken_while_it_waits() -> None:
    clock = SystemClock()
    cache = MemoryCache(clock)
    kept = Leases(cache, Keeper(Silent()), clock)
    with kept.keeper:
        clock.sleep(0.05)
        lease = kept.take(Want("k", "t", timedelta(milliseconds=300)))
        assert lease is not None
        first = lease.valid_until
        deadline = clock.monotonic() + 5
        while lease.valid_until == first and clock.monotonic() < deadline:
            clock.sleep(0.02)
        assert lease.valid_until > first


@dataclass
class Suspended(FakeClock):
    """The clock of a machine whose monotonic time stood still while it was suspended."""

    stood_still: timedelta = timedelta(0)

    def monotonic(self) -> float:
        return super().monotonic() - self.stood_still.total_seconds()


def test_i33_a_machine_that_was_suspended_finds_its_lease_lost_by_the_wall_clock() -> None:
    clock = Suspended()
    lease = Leases(MemoryCache(clock), Keeper(Silent()), clock).take(Want("k", "t", TTL))
    assert lease is not None
    clock.pass_(TTL)
    clock.stood_still = TTL
    assert clock.monotonic() < lease.valid_until
    with pytest.raises(LeaseLost):
        lease.check()
