"""The cache as a user of the product gets it: from its settings, in a function that reads and in a job that refreshes."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import pytest
from pydantic import Field
from redis import Redis

from local.ports import free_port
from shared.backends.redis import RedisStore
from shared.backends.redis_connection import Connection
from shared.cache_store import Loaded
from shared.errors import SettingsError
from shared.item import Stored
from shared.job import job
from shared.payload import Payload
from shared.retry import Retry
from shared.runtime import cache
from shared.settings import Settings
from shared.table import Table
from shared.tag import Tag, Version
from shared.telemetry import NO_JOB_TYPE, Silent
from shared.worker import Worker
from tests.world import World, body

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.valkey import Valkey
    from shared.cache import Cache
    from shared.unit_of_work import UnitOfWork

USERS = Table("users", key="user_id")
SETTINGS = Settings("test", "jobs", "outbox", cache_tls=False, cache_cluster=False)


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
    code = "import sys, functions.payments; print([name for name in sys.modules if name.startswith('shared.cache')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)  # noqa: S603 - our own words
    assert ran.stdout.strip() == "['shared.cache_store']"  # what the invalidation of a tag knows of entries


class RefreshUserCache(Payload):
    """Bring the cached profile of a user to this version or a later one."""

    user_id: Annotated[str, Field(min_length=1)]
    version: Annotated[int, Field(ge=1)]


def refreshing(users: Cache, meanwhile: Callable[[int], None] = lambda _: None) -> Worker:
    """A worker with one job; `meanwhile` happens while it works."""

    @job(
        "refresh-user-cache",
        version=1,
        timeout=timedelta(seconds=10),
        max_latency=timedelta(minutes=1),
        retry=Retry(max_attempts=3, base=timedelta(seconds=1), cap=timedelta(minutes=1)),
        uses=(USERS.read,),
    )
    def refresh_user_cache(payload: RefreshUserCache, work: UnitOfWork) -> None:
        user = work.read(USERS, payload.user_id)
        meanwhile(payload.version)
        if user is not None:
            profile = Loaded(user.text("profile"), Version(user.version))
            users.put(f"user/{payload.user_id}", "profile", profile)

    return Worker("users", jobs=(refresh_user_cache,))


def deliver(world: World, version: int) -> bool:
    """Deliver the refresh that was sent for a version; tell whether it was acknowledged."""
    text = body(
        job_type="refresh-user-cache",
        idempotency_key=f"refresh-1-{version}",
        payload={"user_id": "1", "version": version},
    )
    _, acknowledged = world.run(text)
    return acknowledged


def test_r1_3_an_older_refresh_that_arrives_late_never_writes_over_a_newer_entry(
    settings: Settings, valkey: Valkey
) -> None:
    telemetry = Silent()
    users = patient(cache(settings, telemetry), valkey)
    store = RedisStore(users.entries.connection)  # type: ignore[attr-defined]

    def commit(version: int) -> None:
        world.database.items[USERS.name, ("1",)] = Stored({"user_id": "1", "profile": f"profile {version}"}, version)

    def read() -> str | None:
        stored = world.database.items[USERS.name, ("1",)]
        return users.read("user/1", "profile", lambda: Loaded(stored.attributes["profile"], Version(stored.version)))

    def overtaken(version: int) -> None:
        """While the refresh of version 2 works on what it has read, version 3 is committed and its refresh runs."""
        if version == 2 and not seen:
            commit(3)
            seen.append(deliver(world, 3))
            seen.append(read())

    seen: list[object] = []
    world = World(refreshing(users, overtaken))
    store.finish([Tag("user/1")], [])
    commit(1)
    assert read() == "profile 1"
    commit(2)
    assert not deliver(world, 2)  # what it read has changed: it begins anew
    assert seen == [True, "profile 3"]
    assert read() == "profile 3"
    assert telemetry.counts["cache_put_refused", NO_JOB_TYPE] == 1  # the witness
    world.clock.pass_(timedelta(minutes=1))
    assert deliver(world, 2)
    assert read() == "profile 3"
    assert telemetry.counts["cache_rebuilt", NO_JOB_TYPE] == 1  # all the rest was put


def test_r1_3_a_refresh_of_what_nobody_has_read_leaves_it_to_the_next_reader(
    settings: Settings, valkey: Valkey
) -> None:
    telemetry = Silent()
    users = patient(cache(settings, telemetry), valkey)
    RedisStore(users.entries.connection).finish([Tag("user/2")], [])  # type: ignore[attr-defined]
    assert not users.put("user/2", "profile", Loaded("profile 7", Version(7)))
    assert users.read("user/2", "profile", lambda: Loaded("profile 8", Version(8))) == "profile 8"
    assert users.put("user/2", "profile", Loaded("profile 9", Version(9)))
    assert users.read("user/2", "profile", lambda: Loaded("never asked")) == "profile 9"
