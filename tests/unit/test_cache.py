"""Reading through: who loads, who waits, who gets an old value; the cache decides nothing, and its loss costs only time."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from shared.caching.lives import Lifetimes, Lives
from shared.caching.reading import LONGEST_PAUSE, SETTLING
from shared.caching.renewal import in_a_thread
from shared.caching.source import SOURCE, Source
from shared.caching.store import Loaded, Miss
from shared.errors import CacheUnavailable, ClaimLost, LeaseLost, Refused, RetryLater, Stopping, Unavailable
from shared.tag import Tag, Version
from tests.unit.cache_scene import SPREADLESS, Down, Gone, Origin, Scene, Slow, in_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=10)


@pytest.mark.parametrize("value", ["", "0", "null", "false", "[]", None])
def test_a_value_is_loaded_once_also_when_it_is_falsy_or_absent(value: str | None) -> None:
    scene, origin = Scene(), Origin(value)
    assert [scene.read(origin) for _ in range(3)] == [value] * 3
    assert origin.loads == 1
    assert scene.counts == {"miss": 1, "rebuilt": 1, "hit": 2}


def test_what_no_invalidation_could_name_and_what_no_server_could_keep_is_refused() -> None:
    with pytest.raises(Refused):
        Scene().cache.read("", "n", Origin("value"))
    with pytest.raises(Refused, match="surrogate"):
        Loaded("half of a pair: \ud83d")


def test_an_absence_is_remembered_for_a_short_time_only() -> None:
    scene, origin = Scene(), Origin(None, "created")
    scene.read(origin)
    scene.clock.pass_(SPREADLESS.absent - SECOND)
    assert scene.read(origin) is None
    scene.clock.pass_(SECOND)
    assert scene.read(origin) == "created"


def test_after_an_invalidation_the_source_is_asked_anew() -> None:
    scene, origin = Scene(), Origin("old", "new")
    scene.read(origin)
    scene.store.finish([Tag("t")], [])
    assert scene.read(origin) == "new"


def test_i36_a_load_that_an_invalidation_overtook_is_given_to_its_caller_and_not_kept() -> None:
    scene, origin = Scene(), Origin("old", "new")
    origin.meanwhile = lambda: scene.store.finish([Tag("t")], [])
    assert scene.read(origin) == "old"
    assert scene.counts["refused"] == 1
    origin.meanwhile = lambda: None
    assert scene.read(origin) == "new"
    assert scene.read(origin) == "new"


def test_cac_05_whoever_comes_while_another_loads_waits_and_gets_what_it_loaded() -> None:
    scene, origin = Scene(), Origin("never asked")
    assert scene.store.fetch("t", "n", "another", LEASE, None) == Miss()
    sleep = scene.clock.sleep

    def sleeping(seconds: float) -> None:
        sleep(seconds)
        if len(scene.clock.slept) == 5:
            scene.store.store("t", "n", "another", Loaded("theirs"), Lives(LEASE, LEASE))

    scene.clock.sleep = sleeping  # type: ignore[method-assign]
    assert scene.read(origin) == "theirs"
    assert origin.loads == 0
    assert scene.counts == {"waited": 1, "hit": 1}


def test_waits_grow_up_to_a_quarter_of_a_second_and_are_never_twice_the_same() -> None:
    scene = Scene()
    scene.store.fetch("t", "n", "another", timedelta(minutes=1), None)
    scene.read(Origin("mine"))
    slept = scene.clock.slept[:-1]  # the last is what was left
    assert slept[0] < 0.03
    assert max(slept) > 0.2
    assert max(slept) <= LONGEST_PAUSE.total_seconds()
    assert len(set(slept)) == len(slept)


def test_cac_05_whoever_waits_longer_than_its_patience_asks_the_source_and_stores_nothing() -> None:
    scene, origin = Scene(), Origin("mine")
    scene.store.fetch("t", "n", "another", timedelta(minutes=1), None)
    assert scene.read(origin) == "mine"
    assert sum(scene.clock.slept) == pytest.approx(scene.cache.patience.total_seconds())
    assert scene.counts == {"waited": 1, "bypassed": 1}
    assert scene.store.store("t", "n", "another", Loaded("theirs"), Lives(LEASE, LEASE))


def test_a_caller_with_less_time_than_patience_waits_for_others_no_longer_than_it_has() -> None:
    scene, origin = Scene(), Origin("mine")
    scene.store.fetch("t", "n", "another", timedelta(minutes=1), None)
    assert scene.read(origin, within=SECOND / 2) == "mine"
    assert sum(scene.clock.slept) == pytest.approx(0.5)
    assert scene.read(origin, within=timedelta(hours=1)) == "mine"
    assert sum(scene.clock.slept) == pytest.approx(0.5 + scene.cache.patience.total_seconds())


class Noting(Source):
    """A source that notes how long its callers would wait."""

    def __init__(self) -> None:
        super().__init__()
        self.patience: list[timedelta | None] = []

    def load(self, key: Any, load: Callable[[], Loaded], *, patience: timedelta | None = None) -> Loaded:
        self.patience.append(patience)
        return super().load(key, load, patience=patience)


def test_a_caller_waits_for_the_source_no_longer_than_it_has() -> None:
    source = Noting()
    scene = Scene(source=source)
    scene.store.fetch("t", "n", "another", timedelta(minutes=1), None)
    assert scene.read(Origin("value"), within=SECOND) == "value"
    scene = Scene(Gone(), source=source)
    assert scene.read(Origin("value"), within=SECOND) == "value"
    assert scene.read(Origin("value")) == "value"
    assert source.patience == [timedelta(0), SECOND, None]


def test_a_waiter_whose_patience_ends_between_two_looks_at_the_clock_does_not_wait_for_less_than_nothing() -> None:
    for millis in range(100, 150):
        scene, looks = Scene(), iter(range(10_000))
        scene.store.fetch("t", "n", "another", timedelta(minutes=1), None)
        monotonic = scene.clock.monotonic
        slow = lambda monotonic=monotonic, looks=looks: monotonic() + next(looks) * 0.01  # noqa: E731 - time passes
        scene.clock.monotonic = slow  # type: ignore[method-assign]
        assert scene.read(Origin("mine"), within=timedelta(milliseconds=millis)) == "mine"
        assert min(scene.clock.slept) > 0


def test_cac_05_a_waiter_takes_over_from_a_loader_that_died() -> None:
    scene, origin = Scene(patience=timedelta(minutes=1)), Origin("mine")
    scene.store.fetch("t", "n", "dead", LEASE, None)
    assert scene.read(origin) == "mine"
    assert scene.counts == {"waited": 1, "miss": 1, "rebuilt": 1}
    assert scene.read(origin) == "mine"
    assert origin.loads == 1


def test_cac_05_a_loader_that_raises_is_told_so_and_the_next_caller_tries_at_once() -> None:
    scene, origin = Scene(), Origin(Down(), "value")
    with pytest.raises(Down):
        scene.read(origin)
    assert scene.read(origin) == "value"
    assert scene.clock.slept == []
    assert scene.counts == {"miss": 2, "load_failed": 1, "rebuilt": 1}


def test_past_its_soft_time_one_caller_refreshes_and_others_get_the_old_value_at_once() -> None:
    scene, origin = Scene(), Origin("old", "new")
    scene.read(origin)
    scene.clock.pass_(SPREADLESS.soft)
    others: list[str | None] = []
    origin.meanwhile = lambda: others.append(scene.read(Origin("never asked")))
    assert scene.read(origin) == "new"
    assert others == ["old"]
    assert scene.counts == {"miss": 1, "rebuilt": 2, "stale_served": 1}


def test_a_refresh_that_fails_gives_the_old_value_and_spares_the_source_for_a_rest() -> None:
    scene, origin = Scene(), Origin("old", Down(), Down(), "new")
    scene.read(origin)
    scene.clock.pass_(SPREADLESS.soft)
    assert [scene.read(origin) for _ in range(20)] == ["old"] * 20
    assert origin.loads == 2
    scene.clock.pass_(scene.cache.lease)
    assert scene.read(origin) == "old"
    assert origin.loads == 2
    scene.clock.pass_(scene.cache.rest - scene.cache.lease)
    assert [scene.read(origin) for _ in range(20)] == ["old"] * 20
    assert origin.loads == 3
    scene.clock.pass_(scene.cache.rest)
    assert scene.read(origin) == "new"
    assert scene.counts["load_failed"] == 2


def test_i37_a_refresh_that_fails_after_the_hard_time_is_told_to_its_caller() -> None:
    scene, origin = Scene(), Origin("old", Down())
    scene.read(origin)
    scene.clock.pass_(SPREADLESS.soft)
    origin.meanwhile = lambda: scene.clock.pass_(SPREADLESS.hard - SPREADLESS.soft)
    with pytest.raises(Down):
        scene.read(origin)


@pytest.mark.parametrize("ending", [RetryLater("busy"), LeaseLost(), ClaimLost(), Stopping()])
def test_a_job_that_ends_while_it_refreshes_or_compares_ends(ending: Exception) -> None:
    scene, origin = Scene(), Origin("old", ending, "new")
    scene.read(origin)
    scene.clock.pass_(SPREADLESS.soft)
    with pytest.raises(type(ending)):
        scene.read(origin)
    assert scene.read(origin) == "new"  # and it has given its lease back
    assert "load_failed" not in scene.counts
    with pytest.raises(type(ending)):
        Scene().read(Origin(ending))
    compared = Scene(sample=1.0)
    compared.read(Origin("value"))
    with pytest.raises(type(ending)):
        compared.read(Origin(ending))


def test_i37_a_reader_that_knows_of_a_version_never_gets_a_lower_one_from_the_cache() -> None:
    scene = Scene()
    origin = Origin(Loaded("v1", Version(1)), Loaded("v2", Version(2)))
    assert scene.read(origin) == "v1"
    assert scene.read(origin, at_least=Version(1)) == "v1"
    assert scene.read(origin, at_least=Version(2)) == "v2"
    assert scene.read(origin) == "v2"
    assert origin.loads == 2


def test_a_refill_lease_is_renewed_while_its_load_takes_long() -> None:
    renewals: list[bool] = []

    @contextmanager
    def twice(renew: Callable[[], bool], every: timedelta) -> Iterator[None]:
        assert every < LEASE / 2
        yield
        for _ in range(2):
            scene.clock.pass_(every * 2)
            renewals.append(renew())
        assert scene.store.fetch("t", "n", "another", LEASE, None) != Miss()

    scene = Scene(renewal=twice)
    assert scene.read(Origin("value")) == "value"
    assert renewals == [True, True]
    assert scene.counts["rebuilt"] == 1


def test_the_renewing_thread_goes_on_over_failures_stops_at_a_no_and_ends_with_its_block() -> None:
    answers: list[Any] = [CacheUnavailable(), True, False]
    asked, refused = [], threading.Event()

    def renew() -> bool:
        asked.append(threading.current_thread())
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if not answer:
            refused.set()
        return bool(answer)

    with in_a_thread(renew, timedelta(milliseconds=5)):
        assert refused.wait(10)
        asked[0].join(10)  # a lease that is lost stays lost
        assert not asked[0].is_alive()
    assert len(asked) == 3

    seen: list[threading.Thread] = []

    def failing() -> None:
        with in_a_thread(renew, timedelta(hours=1)):
            seen.extend(thread for thread in threading.enumerate() if thread.name == "cache-renewal")
            raise Down

    with pytest.raises(Down):
        failing()
    assert [thread.is_alive() for thread in seen] == [False]


def test_cac_10_without_redis_reads_go_to_the_source() -> None:
    scene, origin = Scene(Gone()), Origin("1", "2")
    assert [scene.read(origin) for _ in range(2)] == ["1", "2"]
    assert scene.counts == {"bypassed": 2}


def test_cac_10_redis_that_goes_away_during_a_load_costs_the_caller_nothing() -> None:
    scene = Scene()
    object.__setattr__(scene.cache, "entries", Gone(scene.store, "store", "abandon"))
    assert scene.read(Origin("value")) == "value"
    scene.store.forget()
    with pytest.raises(Down):
        scene.read(Origin(Down()))


def test_i39_without_redis_few_read_the_source_at_once_and_the_rest_is_shed() -> None:
    slow = Slow()
    scene = Scene(Gone(), source=Source(at_once=3, patience=timedelta(milliseconds=50)))
    first, served = in_threads(3, lambda place: scene.cache.read("t", f"n{place}", slow))
    for _ in range(3):
        assert slow.begun.acquire(timeout=30)
    second, refused = in_threads(5, lambda place: scene.cache.read("t", f"m{place}", slow))
    for thread in second:
        thread.join()
    slow.go.set()
    for thread in first:
        thread.join()
    assert served == ["value"] * 3
    assert [type(error) for error in refused] == [Unavailable] * 5
    assert {error.dependency for error in refused if isinstance(error, Unavailable)} == {SOURCE}
    assert (slow.loads, slow.most) == (3, 3)
    assert scene.counts == {"bypassed": 8, "shed": 5}
    assert scene.cache.read("t", "n", Origin("after")) == "after"


def test_i39_without_redis_equal_reads_share_one_load_unless_one_knows_of_a_higher_version() -> None:
    slow = Slow()
    joined = threading.Semaphore(0)

    class Watched(Source):
        def load(self, key: Any, load: Callable[[], Loaded], *, patience: timedelta | None = None) -> Loaded:
            joined.release()
            return super().load(key, load, patience=patience)

    scene = Scene(Gone(), source=Watched(patience=timedelta(seconds=30)))
    threads, answers = in_threads(20, lambda place: scene.read(slow, at_least=Version(1) if place == 0 else None))
    for _ in range(20):
        assert joined.acquire(timeout=30)
    for _ in range(2):
        assert slow.begun.acquire(timeout=30)
    slow.go.set()
    for thread in threads:
        thread.join()
    assert answers == ["value"] * 20
    # One knows more, one comes first, and the rest shares the next; one that had not joined it yet may have loaded anew.
    assert slow.loads <= 4


def sampled(*held: Loaded | str | BaseException | None) -> tuple[Scene, Origin]:
    scene, origin = Scene(sample=1.0), Origin("kept", *held)
    scene.read(origin)
    return scene, origin


def test_a_hit_is_compared_with_the_source_and_equal_ones_stay() -> None:
    scene, origin = sampled("kept")
    assert scene.read(origin) == "kept"
    assert origin.loads == 2
    assert "mismatch" not in scene.counts


def test_a_hit_is_not_compared_where_that_would_have_to_wait() -> None:
    slow, source = Slow(), Noting()
    scene = Scene(sample=1.0, source=source)
    scene.read(Origin("kept"))
    threads, first = in_threads(1, lambda _: scene.read(slow))
    assert slow.begun.acquire(timeout=30)
    assert scene.read(Origin("never asked")) == "kept"
    assert source.patience == [timedelta(0)] * 2
    slow.go.set()
    threads[0].join()
    assert first == ["value"]


def test_a_hit_that_differs_from_the_source_and_stays_is_counted_and_dropped() -> None:
    scene, origin = sampled("other")
    assert scene.read(origin) == "other"
    assert scene.clock.slept == [SETTLING.total_seconds()]
    assert scene.counts["mismatch"] == 1
    scene.read(origin)
    assert scene.counts["miss"] == 2


@pytest.mark.parametrize("keeps_another", [False, True])
def test_a_difference_that_an_invalidation_explains_is_no_mismatch(keeps_another: bool) -> None:
    scene, origin = sampled("new")

    slept: list[float] = []

    def invalidated(seconds: float) -> None:
        slept.append(seconds)
        scene.clock.pass_(timedelta(seconds=seconds))
        scene.store.finish([Tag("t")], [])
        if keeps_another:
            scene.store.fetch("t", "n", "another", LEASE, None)
            scene.store.store("t", "n", "another", Loaded("new"), Lives(LEASE, LEASE))

    scene.clock.sleep = invalidated  # type: ignore[method-assign]
    assert scene.read(origin) == "new"
    assert "mismatch" not in scene.counts
    assert scene.read(origin) == "new"
    assert slept == [SETTLING.total_seconds()]  # once: the look has left no lease behind


def test_a_source_that_lags_behind_the_cache_is_no_mismatch() -> None:
    scene = Scene(sample=1.0)
    scene.read(Origin(Loaded("v2", Version(2))))
    assert scene.read(Origin(Loaded("v1", Version(1)))) == "v2"
    assert "mismatch" not in scene.counts


def test_a_comparison_that_fails_fails_no_read() -> None:
    scene, origin = sampled(Down())
    assert scene.read(origin) == "kept"
    scene, origin = sampled("other")
    object.__setattr__(scene.cache, "entries", Gone(scene.store, "discard"))
    assert scene.read(origin) == "other"


def test_one_hit_in_a_hundred_is_compared() -> None:
    scene, origin = Scene(sample=0.01), Origin("kept")
    for _ in range(2000):
        scene.read(origin)
    assert 5 < origin.loads < 50


def test_an_old_value_that_another_refreshes_is_not_compared() -> None:
    scene, origin = sampled("new")
    scene.clock.pass_(SPREADLESS.soft)
    others: list[str | None] = []
    origin.meanwhile = lambda: others.append(scene.read(Origin("never asked")))
    scene.read(origin)
    assert others == ["kept"]


def test_cac_05_a_thousand_lives_are_spread_and_none_is_longer_than_the_hard_time() -> None:
    random, lifetimes = Random(3), Lifetimes()  # noqa: S311 - repeatable
    lives = [lifetimes.of(Loaded("v"), random) for _ in range(1000)]
    soft, hard = [life.soft.total_seconds() for life in lives], [life.hard.total_seconds() for life in lives]
    for times, low, high in ((soft, 48, 72), (hard, 480, 600)):
        assert low <= min(times) < max(times) <= high
        tenths = [sum(int((time - low) / (high - low) * 10) == tenth for time in times) for tenth in range(10)]
        assert 50 < min(tenths) <= max(tenths) < 150
    absent = [lifetimes.of(Loaded(None), random) for _ in range(100)]
    assert all(life.soft == life.hard and timedelta(seconds=4) <= life.hard <= 5 * SECOND for life in absent)
    short = Lifetimes(soft=timedelta(seconds=600), hard=timedelta(seconds=300))
    assert all(life.soft <= life.hard for life in (short.of(Loaded("v"), random) for _ in range(100)))
