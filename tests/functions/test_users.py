"""The worker `users`: every file of events/users on real stores, and what its job promises of the cache."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions import users
from functions.users import ENTRY, USERS, shown_user, user_tag
from functions.views.shown import Shown
from local.demo.situations import EVENTS
from local.outside.payment_provider import Provider
from shared.backends.redis.connection import Connection
from shared.backends.redis.leases import RedisStore
from shared.caching.store import Loaded
from shared.item import Stored
from shared.outcome import DeadLettered, Duplicate, Retried
from shared.runtime import cache
from shared.settings import Settings
from shared.tag import Tag, Version
from shared.telemetry import NO_JOB_TYPE, Silent
from tests.stack import Stack, new_stack
from tests.world import World, body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.stack.valkey import Valkey
    from shared.cache import Cache
    from shared.outcome import Outcome

FILES = EVENTS.parent / "users"
SEEDED = {"user-changed": 2, "user-thrice": 2, "user-late": 3, "user-behind": 8}
NOTHING = "nothing was kept"
PATIENT = timedelta(seconds=20)  # of tests, where the server answers however busy the machine is


def patient(valkey: Valkey) -> Connection:
    return Connection(valkey.host, valkey.port, tls=False, cluster=False, wait=PATIENT)


def patient_cache(settings: Settings, telemetry: Silent) -> Cache:
    """The settings' cache, that waits for its server."""
    made = cache(settings, telemetry)
    connection = Connection(settings.cache_host, int(settings.cache_port), tls=False, cluster=False, wait=PATIENT)
    return replace(made, entries=replace(made.entries, connection=connection), sample=0.0)  # type: ignore[type-var]


@pytest.fixture(scope="module")
def ended(aws_endpoint: str, valkey: Valkey) -> Iterator[Stack]:
    """All situations on one stack, sent at once and run to their end; each user but one is cached as it was before."""
    with Provider(0) as provider:  # nobody calls it
        stack = new_stack(valkey, provider, worker=users.WORKER)
        made = patient_cache(stack.settings, Silent())
        for user, version in SEEDED.items():
            fill(made, user, version - 1)
            stack.database.client.put_item(
                TableName=stack.settings.tables["users"],
                Item={"user_id": {"S": user}, "name": {"S": f"name {version}"}, "version": {"N": str(version)}},
            )
        fill(made, "user-deleted", 3)
        for path in sorted(FILES.glob("*.json")):
            for record in json.loads(path.read_text(encoding="utf-8"))["Records"]:
                stack.send(record["body"])
        stack.run(patience=timedelta(seconds=120))
        yield stack


def fill(made: Cache, user: str, version: int) -> None:
    made.read(user_tag(user), ENTRY, lambda: Loaded(f"cached {version}", Version(version)))


def kept(stack: Stack, user: str) -> str | None:
    return patient_cache(stack.settings, Silent()).read(user_tag(user), ENTRY, lambda: Loaded(NOTHING))


def records(stack: Stack) -> dict[str, dict[str, Any]]:
    items = stack.database.client.scan(TableName=stack.settings.jobs_table)["Items"]
    return {item["idempotency_key"]["S"]: item for item in items}


@pytest.mark.parametrize("user", ["user-changed", "user-thrice", "user-late"])
def test_r1_3_what_is_cached_is_what_the_user_is_now_or_nothing(ended: Stack, user: str) -> None:
    """Nothing: a busy machine's Redis answered too late, or a duplicate came, and the redelivery invalidated."""
    version = SEEDED[user]
    text = kept(ended, user) or ""
    if text != NOTHING:
        shown = Shown.read(text)
        assert shown.etag == f'"{version}"'
        assert json.loads(shown.body) == {"user_id": user, "name": f"name {version}"}


def test_a_deleted_user_leaves_the_cache_and_the_job_is_done(ended: Stack) -> None:
    assert kept(ended, "user-deleted") == NOTHING
    record = records(ended)["user-deleted/refresh/4"]
    assert record["status"]["S"] == "completed"
    assert json.loads(record["data"]["S"]) == {"user_id": "user-deleted", "version": None}


def test_a_change_that_never_comes_is_a_dead_letter_with_its_reason(ended: Stack) -> None:
    found = sorted((facts["reason"], facts["attempts"]) for _, facts in ended.dead_letters())
    assert found == [("change-not-there", users.ATTEMPTS), ("invalid-payload", 0)]
    assert kept(ended, "user-behind") == "cached 7"  # nothing was done


def test_every_job_ended_and_no_invocation_failed(ended: Stack) -> None:
    assert ended.mapping.errors == []
    states = {key: item["status"]["S"] for key, item in records(ended).items()}
    assert states.pop("user-behind/refresh/9") == "dead-lettered"
    assert set(states.values()) == {"completed"}
    assert len(states) == 5


class Fixture:
    """The job in a world of its own, whose cache is a real one."""

    def __init__(self, valkey: Valkey, user: str) -> None:
        self.user = user
        self.telemetry = Silent()
        connection = patient(valkey)
        self.store = RedisStore(connection)
        self.world = World(users.WORKER)
        self.world.cache = self.store
        self.cache = new_cache(valkey, self.telemetry)
        self.store.finish([Tag(user_tag(user))], [])

    def commit(self, version: int) -> None:
        """Whoever changes users has done so."""
        stored = Stored({"user_id": self.user, "name": f"name {version}"}, version)
        self.world.database.items[USERS.name, (self.user,)] = stored

    def read(self) -> str | None:
        """As the front door reads; the name in what was found."""
        stored = self.world.database.items[USERS.name, (self.user,)]
        text = self.cache.read(user_tag(self.user), ENTRY, lambda: shown_user(stored.attributes, stored.version))
        return None if text is None else json.loads(Shown.read(text).body)["name"]

    def deliver(self, version: int) -> tuple[Outcome, bool]:
        payload = {"user_id": self.user, "version": version}
        key = f"{self.user}/refresh/{version}"
        return self.world.run(body(job_type="refresh-user-cache", idempotency_key=key, payload=payload))

    @property
    def rebuilt(self) -> int:
        return self.telemetry.counts["cache_rebuilt", NO_JOB_TYPE]


def new_cache(valkey: Valkey, telemetry: Silent) -> Cache:
    plain = Settings("jobs", "outbox", cache_tls=False, cache_cluster=False)
    return patient_cache(replace(plain, cache_host=valkey.host, cache_port=str(valkey.port)), telemetry)


def test_r1_3_an_older_job_that_arrives_late_never_writes_over_a_newer_entry(valkey: Valkey) -> None:
    case = Fixture(valkey, "late")
    case.commit(1)
    assert case.read() == "name 1"
    case.commit(3)
    assert case.deliver(3)[1]
    assert case.deliver(2)[1]
    assert case.read() == "name 3"
    assert case.rebuilt == 1  # both jobs moved forward what was there


def test_i12_a_job_that_is_overtaken_while_it_works_changes_nothing_and_begins_anew(valkey: Valkey) -> None:
    case = Fixture(valkey, "overtaken")
    case.commit(1)
    case.read()
    case.commit(2)
    read = case.world.database.read
    seen: list[object] = []

    class Overtaken:
        """While the job of version 2 works on what it has read, version 3 is committed and its job runs."""

        def __getattr__(self, name: str) -> Any:
            return getattr(database, name)

        def read(self, *key: Any) -> Any:
            found = read(*key)
            if not seen:
                seen.append(1)
                case.commit(3)
                seen.append(case.deliver(3)[1])
            return found

    database, case.world.database = case.world.database, Overtaken()
    outcome, acknowledged = case.deliver(2)
    assert isinstance(outcome, Retried)
    assert (seen, acknowledged, case.read()) == ([1, True], False, "name 3")
    case.world.clock.pass_(timedelta(minutes=1))
    assert case.deliver(2)[1]
    assert case.read() == "name 3"


def test_what_nobody_has_read_is_left_to_the_next_reader(valkey: Valkey) -> None:
    case = Fixture(valkey, "unread")
    case.commit(2)
    assert case.deliver(2)[1]
    assert (case.read(), case.rebuilt) == ("name 2", 1)


def test_r1_3_what_was_read_before_is_there_at_once_after_the_change(valkey: Valkey) -> None:
    case = Fixture(valkey, "changed")
    case.commit(1)
    case.read()
    case.commit(2)
    assert case.deliver(2)[1]
    assert (case.read(), case.rebuilt) == ("name 2", 1)
    assert case.deliver(2) == (Duplicate("completed"), True)
    assert (case.read(), case.rebuilt) == ("name 2", 2)  # a duplicate drops what its job had kept


def test_i36_a_redelivery_invalidates_and_never_puts_back_what_the_job_saw(valkey: Valkey) -> None:
    case = Fixture(valkey, "repeated")
    case.commit(1)
    case.read()
    case.commit(2)
    assert case.deliver(2)[1]
    case.commit(3)  # by somebody whose own job is still on its way
    assert case.deliver(2) == (Duplicate("completed"), True)
    assert (case.read(), case.rebuilt) == ("name 3", 2)


def test_i37_a_refresh_that_redis_does_not_take_is_repeated_as_an_invalidation(valkey: Valkey) -> None:
    case = Fixture(valkey, "gone")
    case.commit(1)
    case.read()
    case.commit(2)
    healthy, case.world.cache = case.world.cache, RedisStore(Connection("127.0.0.1", 1, tls=False, cluster=False))
    assert not case.deliver(2)[1]
    assert case.read() == "name 1"
    case.world.cache = healthy
    assert case.deliver(2)[1]
    assert case.read() == "name 2"


def test_r1_3_a_job_waits_for_the_change_that_it_announces() -> None:
    world = World(users.WORKER)
    text = body(job_type="refresh-user-cache", payload={"user_id": "u", "version": 2})
    world.database.items[USERS.name, ("u",)] = Stored({"user_id": "u"}, 1)
    outcomes = []
    for _ in range(users.ATTEMPTS):
        outcomes.append(world.run(text)[0])
        world.clock.pass_(timedelta(minutes=1))
    assert all(isinstance(outcome, Retried) for outcome in outcomes[:-1])
    assert isinstance(outcomes[-1], DeadLettered)
    assert outcomes[-1].failure.reason == "change-not-there"


def test_only_what_is_listed_is_shown_of_a_user() -> None:
    entry = shown_user({"user_id": "u", "name": "N", "password_hash": "secret", "internal": 3}, 7)
    shown = Shown.read(entry.value or "")
    assert (entry.version, shown.etag, json.loads(shown.body)) == (Version(7), '"7"', {"user_id": "u", "name": "N"})
