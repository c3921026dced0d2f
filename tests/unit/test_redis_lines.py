"""The open connections of a client: what is kept of them, and what becomes of one that was cut."""

from __future__ import annotations

import hashlib
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis, RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError

from shared.backends.redis.lines import Command, Lines, packed
from tests.fake_redis import ONE, FakeRedis, error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.stack.valkey import Valkey


def drop(key: str) -> Command:
    return Command(key, ("DEL", key))


def lines_of(server: FakeRedis, **options: Any) -> Lines:
    return Lines(Redis(server.host, server.port, protocol=2, driver_info=None, **options))


def cluster_of(server: FakeRedis) -> Lines:
    client = RedisCluster(host=server.host, port=server.port, protocol=2, driver_info=None, dynamic_startup_nodes=False)
    return Lines(client)


@pytest.mark.parametrize("word", ["", "a", "ä\u4e2d", "line\r\nend", "$3\r\nfoo", "x" * 100_000])
def test_words_are_packed_as_the_client_packs_them(word: str) -> None:
    client: Any = Redis()
    words = ("EVAL", word, "1", word)
    theirs = b"".join(client.connection_pool.make_connection().pack_command(*words))
    assert packed([Command(word, words), drop("a")]) == theirs + b"*2\r\n$3\r\nDEL\r\n$1\r\na\r\n"


def test_a_line_is_opened_once_and_used_again() -> None:
    with FakeRedis(lambda *_: ONE) as server:
        lines = lines_of(server)
        for _ in range(3):
            assert lines.exchange([drop("a"), drop("b")]) == [1, 1]
        assert server.connections == 1


def test_a_line_is_lent_to_one_at_a_time() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def answer(connection: int, words: list[str]) -> bytes:
        if words[1] == "slow":
            asked.set()
            go_on.wait(20)
        return b":%d\r\n" % connection

    with FakeRedis(answer) as server:
        lines = lines_of(server)
        found: list[object] = []
        slow = threading.Thread(target=lambda: found.extend(lines.exchange([drop("slow")])))
        slow.start()
        assert asked.wait(20)
        assert lines.exchange([drop("quick")]) == [2]
        go_on.set()
        slow.join(20)
        assert found == [1]


def test_a_cut_line_is_given_back_so_that_the_pool_can_open_it_again() -> None:
    with FakeRedis(lambda connection, _: None if connection == 1 else ONE) as server:
        lines = lines_of(server, max_connections=1)
        with pytest.raises(RedisConnectionError):
            lines.exchange([drop("a")])
        assert lines.exchange([drop("a")]) == [1]
        assert server.connections == 2


def test_a_reply_that_comes_after_its_exchange_has_failed_answers_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def answer(connection: int, words: list[str]) -> bytes:
        if words[1] == "slow":
            go_on.wait(20)
        return b":%d\r\n" % connection

    with FakeRedis(answer) as server:
        lines = lines_of(server)
        with monkeypatch.context() as broken:
            broken.setattr("shared.backends.redis.lines._reply", lambda _: sys.exit())
            with pytest.raises(SystemExit):
                lines.exchange([drop("slow")])
        threading.Timer(0.1, go_on.set).start()
        assert lines.exchange([drop("quick")]) == [2]


def test_an_error_of_the_server_is_the_reply_to_its_command_and_leaves_the_others() -> None:
    with FakeRedis(lambda _, words: error("OOM no") if words[1] == "b" else ONE) as server:
        first, second, third = lines_of(server).exchange([drop("a"), drop("b"), drop("c")])
        assert (first, third) == (1, 1)
        assert "no" in str(second)
        assert server.connections == 1


def test_what_is_closed_while_it_is_used_is_closed_after_its_use() -> None:
    with FakeRedis(lambda *_: ONE) as server:
        lines = lines_of(server)
        lines.exchange([drop("a")])
        (line,) = next(iter(lines._free.values()))
        assert line.is_connected
        lines.closed = True
        lines.exchange([drop("a")])
        assert not line.is_connected


@pytest.fixture
def moving() -> Iterator[FakeRedis]:
    """A cluster of one server, which sends the first who asks for a slot to itself."""
    told: list[str] = []

    def answer(_: int, words: list[str]) -> bytes:
        if (known := server.as_cluster(words)) is not None:
            return known
        if words[0] == "EVALSHA" and not told:
            told.append(words[1])
            return error(f"MOVED 1 {server.host}:{server.port}")
        return ONE

    with FakeRedis(answer) as server:
        yield server


def test_a_command_whose_slot_has_moved_is_sent_after_it_and_the_others_are_not_sent_again(moving: FakeRedis) -> None:
    lines = cluster_of(moving)
    assert lines.exchange([drop("a"), Command.script("return 1", "b"), drop("c")]) == [1, 1, 1]
    assert [moving.count(command) for command in ("EVALSHA", "EVAL")] == [1, 1]
    assert moving.count("DEL") == 2


def test_scripts_that_a_server_lacks_are_sent_in_full_in_one_more_exchange_and_then_by_their_digests() -> None:
    known: set[str] = set()

    def answer(_: int, words: list[str]) -> bytes:
        if words[0] == "EVAL":
            known.add(hashlib.sha1(words[1].encode(), usedforsecurity=False).hexdigest())
        return error("NOSCRIPT No matching script.") if words[0] == "EVALSHA" and words[1] not in known else ONE

    commands = [drop("a"), Command.script("return 1", "b", "x"), Command.script("return 1.5", "c"), drop("d")]
    with FakeRedis(answer) as server:
        lines = lines_of(server)
        assert lines.exchange(commands) == [1, 1, 1, 1]
        assert [command for _, command in server.commands] == ["DEL", "EVALSHA", "EVALSHA", "DEL", "EVAL", "EVAL"]
        assert lines.exchange(commands) == [1, 1, 1, 1]
        assert server.count("EVAL") == 2
        assert server.count("DEL") == 4


def test_a_server_that_forgets_its_scripts_is_told_them_again(valkey: Valkey) -> None:
    lines = Lines(Redis(valkey.host, valkey.port, decode_responses=True))
    script = Command.script("return {KEYS[1], ARGV[1]}", "lease:{k}", "word")
    for _ in range(2):
        assert lines.exchange([script]) == [["lease:{k}", "word"]]
        lines.client.script_flush()
