"""Leases against redis-py's lock."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from redis import Redis

from benchmarks import product
from benchmarks.bench import MICROSECONDS, MILLISECONDS, p50, percentile
from benchmarks.declared import Figure, Measure, Sample, Store, Target
from shared.backends.redis.leases import RedisStore
from shared.clock import SystemClock, random_token
from shared.lease import Leases, Want
from shared.pipeline.keeper import Keeper
from shared.telemetry import Silent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.bench import Bench

TIMES = 200  # in a round
BATCH = 10
LEASE = timedelta(seconds=30)
RATE = 200  # leases a second
PEER = "redis-py Lock"
SENT_WHOLE = (
    "Ours sends two scripts as text, each with its owner's check, where the peer's acquire is a plain SET; and it measures"
    " validity and tells the renewing thread, which the peer has not."
)


def run(bench: Bench) -> Mapping[str, Sample]:
    """Take and give back, alone, by ten, and at arrivals that do not wait for the one before."""
    redis = Redis(port=bench.valkey_port)
    names = count()
    with Keeper(Silent()) as keeper:
        store = RedisStore(product.valkey_connection(bench.valkey_port))
        leases = Leases(store, keeper, SystemClock())

        def want() -> Want:
            return Want(f"thing/{next(names)}", random_token(), LEASE)

        def ours() -> None:
            lease = leases.take(want())
            assert lease is not None  # noqa: S101 - nobody else is there
            leases.finish((), (lease,))

        def ours_together() -> None:
            taken = leases.take_all([want() for _ in range(BATCH)])
            leases.finish((), [lease for lease in taken if lease is not None])

        def store_alone() -> None:
            asked = want()
            store.acquire_all((asked,))
            store.finish((), ((asked.key, asked.token),))

        def peer() -> None:
            lock = redis.lock(f"lock:thing/{next(names)}", timeout=LEASE.total_seconds())
            lock.acquire()
            lock.release()

        sides: dict[str, Callable[[], float]] = {
            "ours": lambda: p50(ours, TIMES) * MICROSECONDS,
            "together": lambda: p50(ours_together, TIMES // BATCH) * MICROSECONDS / BATCH,
            "store": lambda: p50(store_alone, TIMES) * MICROSECONDS,
            "peer": lambda: p50(peer, TIMES) * MICROSECONDS,
        }
        found = bench.rounds(sides, bench.number(40, 8))
        number = bench.number(10, 3)
        arrived = bench.rounds({"ours": lambda: _arrivals(ours), "peer": lambda: _arrivals(peer)}, number)
    percentiles = {
        f"arriving_{name}": Sample.of(arrived["ours"], arrived["peer"], partial(percentile, share=share))
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }
    return {
        "single": Sample(found["ours"], found["peer"]),
        "batch": Sample(found["together"], found["peer"]),
        "store": Sample(found["store"], found["peer"]),
        **percentiles,
    }


def _arrivals(function: Callable[[], None]) -> list[float]:
    """Milliseconds from when each call was to begin, by a schedule that was fixed before, to its end; for a second."""
    begun = time.perf_counter()
    found = []
    for place in range(RATE):
        due = begun + place / RATE
        time.sleep(max(0.0, due - time.perf_counter()))
        function()
        found.append((time.perf_counter() - due) * MILLISECONDS)
    return found


MEASURE = Measure(
    name="leases",
    title="Taking a lease and giving it back",
    explanation=(
        "Wall time, p50, on a real Valkey over loopback, each time on a fresh key that nobody else wants. Ours is the"
        " product's whole path: with the renewing thread told, and validity measured. redis-py's Lock renews nothing by"
        " itself. In a batch of ten both of our exchanges are pipelined, and the time is divided by ten. Arrivals follow a"
        " schedule fixed beforehand, 200 a second, and latency counts from when a call was due."
    ),
    figures=(
        Figure("single", "acquire and release, p50", "µs", PEER, Target(at_most=0.85), remark=SENT_WHOLE),
        Figure(
            "batch", "the same for each lease of a batch of ten", "µs", PEER, Target(at_most=0.3), remark=SENT_WHOLE
        ),
        Figure("store", "the two commands alone, without the renewing thread", "µs", PEER, remark=SENT_WHOLE),
        Figure("arriving_p50", "200 arrivals a second, p50", "ms", PEER, tolerance=0.5, remark=SENT_WHOLE),
        Figure("arriving_p95", "200 arrivals a second, p95", "ms", PEER, tolerance=1.0, remark=SENT_WHOLE),
        Figure("arriving_p99", "200 arrivals a second, p99", "ms", PEER, tolerance=1.0, remark=SENT_WHOLE),
    ),
    run=run,
    stores=frozenset({Store.VALKEY}),
)
