"""What the observer reads: dead letters, the workers' log, the cache of a real Valkey."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from redis import Redis

from local.demo.cached import ENTRY, CachedTags
from local.demo.consumer_log import ConsumerLog
from local.demo.observation import Word
from local.demo.observer import dead_letter
from local.processes.ports import free_port
from shared.backends.redis.connection import Connection
from shared.backends.redis.keys import tag_key
from shared.backends.redis.leases import RedisStore
from shared.tag import Tag
from tests.local.scene import READ

if TYPE_CHECKING:
    from pathlib import Path

    from local.stack.valkey import Valkey

DOSSIER = {
    "reason": "unknown-order",
    "attempts": 1,
    "error": "DeadLetter: ",
    "first_failure": "2026-01-01T00:00:00+00:00",
    "last_failure": "2026-01-01T00:00:01+00:00",
}


def test_a_dead_letter_is_read_with_all_that_stands_beside_it() -> None:
    letter = dead_letter("body", json.dumps(DOSSIER), READ)

    assert (letter.reason, letter.attempts, letter.error) == ("unknown-order", 1, "DeadLetter: ")
    assert letter.first == datetime(2026, 1, 1, tzinfo=UTC)
    assert letter.last == datetime(2026, 1, 1, second=1, tzinfo=UTC)


@pytest.mark.parametrize("time", ["2026-01-01T00:00:00", "yesterday", 1767225600, None])
def test_a_time_that_cannot_be_compared_is_none(time: object) -> None:
    assert dead_letter("body", json.dumps({"first_failure": time}), READ).first is None
    assert dead_letter("body", "{}", READ).last is None


def test_lines_about_deliveries_are_taken_from_a_log_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    line = '{"message_id": "m1", "result": "postponed", "because": "contended"}'
    path.write_text(f'2026 INFO [lambda] output:\n{{"_aws": {{}}}}\n[1]\n{line}\n{line[:20]}')
    log = ConsumerLog(path)

    assert log.words() == {"m1": (Word("postponed", "contended"),)}

    with path.open("a") as more:
        more.write(f'{line[20:]}\n{{"message_id": "m1", "result": "succeeded"}}\n')

    waited = Word("postponed", "contended")
    assert log.words() == log.words() == {"m1": (waited, waited, Word("succeeded"))}


def test_a_filled_tag_is_there_until_the_product_drops_it(valkey: Valkey) -> None:
    tags = CachedTags(valkey.host, valkey.port)
    store = RedisStore(Connection(valkey.host, valkey.port, tls=False, cluster=False))
    tags.fill("order/seen", "{}")
    assert tags.present(["order/seen", "order/unseen"]) == frozenset({"order/seen"})

    store.finish([Tag("order/seen")], [])

    assert tags.present(["order/seen"]) == frozenset()


def test_a_tag_of_which_only_a_late_reader_s_token_is_left_is_still_there(valkey: Valkey) -> None:
    tags = CachedTags(valkey.host, valkey.port)
    tags.fill("order/late", "{}")
    with Redis(host=valkey.host, port=valkey.port) as redis:
        assert redis.hdel(tag_key("order/late"), f"m{quote(ENTRY)}") == 1

    assert tags.present(["order/late"]) == frozenset({"order/late"})


def test_without_redis_nobody_knows_what_is_cached() -> None:
    assert CachedTags("127.0.0.1", free_port()).present(["order/1"]) is None
