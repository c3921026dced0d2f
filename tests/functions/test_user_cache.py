"""The cache as a user of the product gets it, from its settings. The job that refreshes it is in test_users.py."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from redis import Redis

from local.processes.ports import free_port
from shared.backends.redis.connection import Connection
from shared.backends.redis.leases import RedisStore
from shared.caching.store import Loaded
from shared.errors import SettingsError
from shared.runtime import cache
from shared.settings import Settings
from shared.tag import Tag, Version
from shared.telemetry import NO_JOB_TYPE, Silent

if TYPE_CHECKING:
    from local.stack.valkey import Valkey
    from shared.cache import Cache

SETTINGS = Settings("jobs", "outbox", cache_tls=False, cache_cluster=False)


@pytest.fixture
def settings(valkey: Valkey) -> Settings:
    return dataclasses.replace(SETTINGS, cache_host=valkey.host, cache_port=str(valkey.port))


def patient(made: Cache, valkey: Valkey) -> Cache:
    """The same cache, that waits for its server however busy the machine is."""
    connection = Connection(valkey.host, valkey.port, tls=False, cluster=False, wait=timedelta(seconds=20))
    entries = dataclasses.replace(made.entries, connection=connection)  # type: ignore[type-var]
    return dataclasses.replace(made, entries=entries, sample=0.0)


def test_a_cache_is_made_of_its_settings_alone_and_opens_nothing_before_it_is_read() -> None:
    nowhere = dataclasses.replace(SETTINGS, cache_host="127.0.0.1", cache_port=str(free_port()))
    telemetry = Silent()
    made = cache(nowhere, telemetry)
    assert made.read("user/1", "profile", lambda: Loaded("from the source")) == "from the source"
    assert telemetry.counts["cache_bypassed", NO_JOB_TYPE] == 1


def test_what_is_read_twice_is_loaded_once_and_what_a_job_invalidates_is_loaded_anew(
    settings: Settings, valkey: Valkey
) -> None:
    telemetry, loads = Silent(), []
    users = patient(cache(settings, telemetry), valkey)

    def load() -> Loaded:
        loads.append(1)
        return Loaded(f"profile {len(loads)}")

    with Redis(port=valkey.port) as redis:
        redis.flushall()
    assert [users.read("user/1", "profile", load, within=timedelta(seconds=2)) for _ in range(3)] == ["profile 1"] * 3
    assert telemetry.counts["cache_hit", NO_JOB_TYPE] == 2
    RedisStore(users.entries.connection).finish([Tag("user/1")], [])  # type: ignore[attr-defined]
    assert users.read("user/1", "profile", load) == "profile 2"


def test_a_function_without_a_cache_is_told_which_setting_is_missing() -> None:
    with pytest.raises(SettingsError, match="TAHAN_CACHE_HOST"):
        cache(SETTINGS, Silent())


def test_a_worker_that_reads_no_cache_loads_nothing_of_it() -> None:
    code = "import sys, functions.payments; print([name for name in sys.modules if name.startswith(('shared.cache', 'shared.caching.'))])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)  # noqa: S603 - our own words
    assert ran.stdout.strip() == "['shared.caching.store']"  # what the invalidation of a tag knows of entries


def test_a_put_of_what_nobody_has_read_leaves_it_to_the_next_reader(settings: Settings, valkey: Valkey) -> None:
    telemetry = Silent()
    users = patient(cache(settings, telemetry), valkey)
    RedisStore(users.entries.connection).finish([Tag("user/2")], [])  # type: ignore[attr-defined]
    assert not users.put("user/2", "profile", Loaded("profile 7", Version(7)))
    assert users.read("user/2", "profile", lambda: Loaded("profile 8", Version(8))) == "profile 8"
    assert users.put("user/2", "profile", Loaded("profile 9", Version(9)))
    assert users.read("user/2", "profile", lambda: Loaded("never asked")) == "profile 9"
