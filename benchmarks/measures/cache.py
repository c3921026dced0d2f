"""Cache hits, and a cold key under many callers, against dogpile.cache and cashews."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from random import SystemRandom
from typing import TYPE_CHECKING

from benchmarks import product
from benchmarks.bench import MICROSECONDS, p50
from benchmarks.declared import Figure, Measure, Of, Sample, Store, Target
from shared.backends.powertools import PowertoolsTelemetry
from shared.backends.redis.cache import RedisCache
from shared.cache import Cache
from shared.caching.store import Loaded
from shared.clock import Surroundings, SystemClock, random_token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.bench import Bench

TIMES = 200  # in a round
CALLERS = 50
LOAD = 0.05  # seconds
DOES_MORE = (
    "A hit of theirs is a GET; ours is a script that also looks at the soft time, the floor of versions and the refill lease,"
    " and it counts the hit. It spares a stampede and an old value that comes back, which theirs does not."
)
VALUE = json.dumps({"user_id": "user-1", "name": "N" * 100, "email": "n@example.org", "locale": "en", "version": 7})


def run(bench: Bench) -> Mapping[str, Sample]:
    """Time hits, then count what fifty callers build."""
    from benchmarks.peers.cached import Cashews, dogpile  # noqa: PLC0415 - in the peers' environment alone

    port = bench.valkey_port
    ours, region, cashews = _cache(port), dogpile(port), Cashews(port)
    read = cashews.cached(lambda _: VALUE)

    async def hits() -> float:
        times = []
        for _ in range(TIMES):
            begun = time.perf_counter()
            await read(name="warm")
            times.append(time.perf_counter() - begun)
        return sorted(times)[TIMES // 2] * MICROSECONDS

    sides: dict[str, Callable[[], float]] = {
        "ours": lambda: p50(lambda: ours.read("thing/warm", "view", lambda: Loaded(VALUE)), TIMES) * MICROSECONDS,
        "dogpile": lambda: p50(lambda: region.get_or_create("warm", lambda: VALUE), TIMES) * MICROSECONDS,
        "cashews": lambda: cashews.run(hits()),
    }
    found = bench.rounds(sides, bench.number(40, 8))
    cashews.close()

    names = count()
    builders: dict[str, Callable[[], float]] = {
        "ours": lambda: _built(f"cold{next(names)}", partial(_ours, port)),
        "dogpile": lambda: _built(f"cold{next(names)}", partial(_dogpile, port, lock=False)),
        "dogpile_lock": lambda: _built(f"cold{next(names)}", partial(_dogpile, port, lock=True)),
        "cashews": lambda: _built(f"cold{next(names)}", partial(_cashews, port, lock=False)),
        "cashews_lock": lambda: _built(f"cold{next(names)}", partial(_cashews, port, lock=True)),
    }
    built = bench.rounds(builders, bench.number(5, 2))
    return {
        "hit_dogpile": Sample(found["ours"], found["dogpile"]),
        "hit_cashews": Sample(found["ours"], found["cashews"]),
        **{
            f"cold_{name}": Sample(built["ours"], built[name])
            for name in ("dogpile", "dogpile_lock", "cashews", "cashews_lock")
        },
    }


def _cache(port: int) -> Cache:
    here = Surroundings(SystemClock(), SystemRandom(), random_token)
    redis = product.valkey_connection(port)
    return Cache(RedisCache(redis), here, PowertoolsTelemetry("bench"), sample=0)


def _built(name: str, caller: Callable[[str, Callable[[], str]], Callable[[], object]]) -> float:
    """How often a cold key is built by callers that are ready, and then all ask at once; each is a client of its own."""
    builds = count()
    ready = threading.Barrier(CALLERS)

    def load() -> str:
        next(builds)
        return VALUE

    def call() -> None:
        ask = caller(name, load)
        ready.wait()
        ask()

    with ThreadPoolExecutor(CALLERS) as pool:
        for future in [pool.submit(call) for _ in range(CALLERS)]:
            future.result()
    return next(builds)


def _slow(load: Callable[[], str]) -> str:
    time.sleep(LOAD)
    return load()


def _ours(port: int, name: str, load: Callable[[], str]) -> Callable[[], object]:
    cache = _cache(port)
    return lambda: cache.read(f"thing/{name}", "view", lambda: Loaded(_slow(load)))


def _dogpile(port: int, name: str, load: Callable[[], str], *, lock: bool) -> Callable[[], object]:
    from benchmarks.peers.cached import dogpile  # noqa: PLC0415 - in the peers' environment alone

    region = dogpile(port, distributed_lock=lock)
    return lambda: region.get_or_create(name, lambda: _slow(load))


def _cashews(port: int, name: str, load: Callable[[], str], *, lock: bool) -> Callable[[], object]:
    from benchmarks.peers.cached import Cashews  # noqa: PLC0415 - in the peers' environment alone

    cashews = Cashews(port)
    read = cashews.cached(lambda _: load(), lock=lock, pause=LOAD)

    def ask() -> None:
        cashews.run(read(name=name))
        cashews.close()

    return ask


def _one(name: str, peer: str) -> Figure:
    what = "builds of a cold key under fifty callers of their own clients"
    return Figure(f"cold_{name}", what, "builds", peer, Target(Of.OURS, at_most=1.0), tolerance=0.0)


MEASURE = Measure(
    name="cache",
    title="A cache hit, and a cold key under fifty callers",
    explanation=(
        "Wall time of a hit, p50, on a real Valkey over loopback with a value of some 200 bytes; nobody caches in the"
        " process. Ours is `Cache.read`: one script that also looks at the entry's soft time and at its refill lease. For"
        " the cold key fifty callers, each with a client of its own as fifty processes would have, ask at once while a"
        " build takes 50 ms; the peers run as they come, and with the lock that they offer for several processes."
    ),
    figures=(
        Figure("hit_dogpile", "a hit, p50", "µs", "dogpile.cache", Target(at_most=0.75), remark=DOES_MORE),
        Figure("hit_cashews", "a hit, p50", "µs", "cashews", Target(at_most=0.3), remark=DOES_MORE),
        _one("dogpile", "dogpile.cache as it comes"),
        _one("dogpile_lock", "dogpile.cache, distributed lock"),
        _one("cashews", "cashews as it comes"),
        _one("cashews_lock", "cashews, lock"),
    ),
    run=run,
    stores=frozenset({Store.VALKEY}),
)
