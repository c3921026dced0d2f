"""What the connection tries again, what it makes of each error, and when it asks no more. By counts, never by a watch."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from redis.crc import key_slot

from shared.backends.redis.breaker import Breaker
from shared.backends.redis.connection import WAIT, Connection
from shared.backends.redis.leases import RedisStore
from shared.backends.redis.lines import Command
from shared.errors import CacheUnavailable, SettingsError
from tests.fake_redis import OK, ONE, SILENCE, FakeRedis, error
from tests.world import FakeClock, acquired

if TYPE_CHECKING:
    from tests.fake_redis import Answer

TTL = timedelta(seconds=20)
SCRIPT = Command.script("return 1", "k", "token")
PATIENCE = timedelta(seconds=20)  # where the server answers, however busy the machine is
CANARY = "s3cret-of-the-server"


def connection(
    server: FakeRedis, *, cluster: bool = False, breaker: Breaker | None = None, wait: timedelta = PATIENCE
) -> Connection:
    return Connection(server.host, server.port, tls=False, cluster=cluster, breaker=breaker or Breaker(), wait=wait)


def acquire(to: Connection) -> bool:
    return acquired(RedisStore(to), "order/1", "token", TTL)


def drop(key: str) -> Command:
    return Command(key, ("DEL", key))


def old_server(line: str) -> Answer:
    """Connections that were open when it changed say `line`; a new one is answered."""

    def answer(connection: int, words: list[str]) -> bytes:
        return error(line) if connection == 1 else ONE

    return answer


@pytest.mark.parametrize(
    "line",
    [
        "READONLY You can't write against a read only replica.",
        "LOADING Valkey is loading the dataset in memory",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "CLUSTERDOWN The cluster is down",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "ERR max number of clients reached",
    ],
)
def test_lck_10_a_server_that_is_not_the_one_to_ask_is_looked_up_anew_once(line: str) -> None:
    with FakeRedis(old_server(line)) as server:
        assert acquire(connection(server))
        assert server.connections == 2
        assert server.commands == [(1, "EVALSHA"), (2, "EVALSHA")]


def test_lck_10_an_exchange_of_which_two_replies_are_readonly_is_done_again_on_a_new_connection() -> None:
    with FakeRedis(old_server("READONLY You can't write against a read only replica.")) as server:
        connection(server).exchange([drop("a"), SCRIPT])
        assert server.commands == [(1, "DEL"), (1, "EVALSHA"), (2, "DEL"), (2, "EVALSHA")]


def test_lck_10_a_server_that_stays_readonly_is_asked_twice_and_no_more() -> None:
    with FakeRedis(lambda *_: error("READONLY You can't write")) as server:
        with pytest.raises(CacheUnavailable, match=r"\(ReadOnlyError, READONLY\)"):
            acquire(connection(server))
        assert server.commands == [(1, "EVALSHA"), (2, "EVALSHA")]


@pytest.mark.parametrize("line", ["MOVED 3999 127.0.0.1:7002", "ASK 3999 127.0.0.1:7002", "CROSSSLOT Keys in request"])
@pytest.mark.parametrize("exchange", [False, True])
def test_lck_10_a_cluster_that_answers_the_plain_client_names_the_setting(line: str, exchange: bool) -> None:
    breaker = Breaker()
    with FakeRedis(lambda *_: error(line)) as server:
        to = connection(server, breaker=breaker)
        for _ in range(breaker.failures + 1):
            with pytest.raises(SettingsError, match="TAHAN_CACHE_CLUSTER=true"):
                to.exchange([drop("a")]) if exchange else acquire(to)
        assert len(server.commands) == breaker.failures + 1  # never tried again, and no failure of Redis
        assert server.connections == 1


def test_a_server_without_the_cluster_protocol_names_the_setting_to_the_cluster_client() -> None:
    with (
        FakeRedis(lambda *_: error("ERR This instance has cluster support disabled")) as server,
        pytest.raises(SettingsError, match="TAHAN_CACHE_CLUSTER=false"),
    ):
        acquire(connection(server, cluster=True))


def test_a_user_who_may_not_ask_for_the_slots_is_not_taken_for_a_wrong_setting() -> None:
    with (
        FakeRedis(lambda *_: error("NOPERM User app has no permissions to run the 'cluster|slots' command")) as server,
        pytest.raises(CacheUnavailable, match="NOPERM"),
    ):
        acquire(connection(server, cluster=True))


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("NOAUTH Authentication required.", "AuthenticationError, NOAUTH"),
        ("WRONGPASS invalid username-password pair", "AuthenticationError, WRONGPASS"),
        ("NOPERM this user has no permissions", "NoPermissionError, NOPERM"),
        ("OOM command not allowed when used memory > 'maxmemory'.", "OutOfMemoryError, OOM"),
        ("BUSY Valkey is busy running a script", "ResponseError, BUSY"),
    ],
)
def test_i48_an_answer_is_named_by_class_and_code_word_and_nothing_of_its_text(line: str, named: str) -> None:
    with FakeRedis(lambda *_: error(f"{line} {CANARY}")) as server, pytest.raises(CacheUnavailable) as refused:
        acquire(connection(server))
    assert str(refused.value) == f"Redis did not do it ({named})."


@pytest.mark.parametrize(
    "line", ["OOM command not allowed", "NOPERM this user has no permissions", "ERR no such thing"]
)
def test_a_command_refused_by_a_server_that_is_well_is_not_sent_again_and_counts_as_an_answer(line: str) -> None:
    breaker = Breaker()
    with FakeRedis(lambda *_: error(line)) as server:
        to = connection(server, breaker=breaker)
        for _ in range(breaker.failures + 1):
            with pytest.raises(CacheUnavailable):
                acquire(to)
        assert server.commands == [(1, "EVALSHA")] * (breaker.failures + 1)


def test_an_exchange_is_not_done_when_one_of_its_replies_is_an_error() -> None:
    def answer(connection: int, words: list[str]) -> bytes:
        return error("OOM command not allowed") if words[0] == "EVALSHA" else ONE

    with FakeRedis(answer) as server:
        with pytest.raises(CacheUnavailable, match="OOM"):
            connection(server).exchange([drop("a"), SCRIPT, drop("b")])
        assert server.count("DEL") == 2


def test_of_several_errors_of_one_exchange_the_one_that_a_new_connection_cures_decides() -> None:
    def answer(connection: int, words: list[str]) -> bytes:
        if connection > 1:
            return ONE
        return error("OOM command not allowed") if words[0] == "DEL" else error("READONLY You can't write")

    with FakeRedis(answer) as server:
        connection(server).exchange([drop("a"), SCRIPT])
        assert server.connections == 2


def test_lck_11_a_dead_socket_is_replaced_and_the_command_sent_once_more() -> None:
    with FakeRedis(lambda connection, _: None if connection == 1 else ONE) as server:
        assert acquire(connection(server))
        assert server.commands == [(1, "EVALSHA"), (2, "EVALSHA")]


@pytest.mark.parametrize("commands", [1, 7])
def test_lck_11_a_server_that_never_answers_is_asked_twice_whatever_the_number_of_commands(commands: int) -> None:
    with FakeRedis(lambda *_: SILENCE) as server:
        with pytest.raises(CacheUnavailable, match="TimeoutError"):
            connection(server, wait=WAIT).exchange([drop(str(n)) for n in range(commands)])
        assert server.connections == 2
        assert server.count("DEL") == 2 * commands


def test_cac_10_a_cluster_that_falls_silent_is_waited_for_twice_whatever_the_number_of_commands() -> None:
    silent = threading.Event()

    def answer(connection: int, words: list[str]) -> bytes:
        return SILENCE if silent.is_set() else server.as_cluster(words) or ONE

    with FakeRedis(answer) as server:
        to = connection(server, cluster=True, wait=WAIT)
        commands = [drop(str(n)) for n in range(7)]
        assert to.exchange(commands) == [1] * 7
        before = len(server.commands)
        silent.set()
        with pytest.raises(CacheUnavailable):
            to.exchange(commands)
        asked = [command for _, command in server.commands[before:]]
        assert asked.count("DEL") == 7  # in one write
        # And who has the slots, once: by the old client or by a new one, so that the two waits are less than a second.
        assert len(asked) - 7 == 1
        assert timedelta(seconds=1) > 2 * WAIT


def test_cac_10_a_command_to_a_cluster_that_falls_silent_is_waited_for_twice() -> None:
    silent = threading.Event()

    def answer(connection: int, words: list[str]) -> bytes:
        return SILENCE if silent.is_set() else server.as_cluster(words) or ONE

    with FakeRedis(answer) as server:
        to = connection(server, cluster=True, wait=WAIT)
        acquire(to)
        before = len(server.commands)
        silent.set()
        with pytest.raises(CacheUnavailable):
            acquire(to)
        assert [command for _, command in server.commands[before:]] == ["EVALSHA", "CLUSTER"]


def test_an_exchange_with_a_cluster_asks_nothing_besides_its_commands() -> None:
    with FakeRedis(lambda _, words: server.as_cluster(words) or ONE) as server:
        to = connection(server, cluster=True)
        acquire(to)
        before = len(server.commands)
        to.exchange([drop("a"), SCRIPT])
        assert [command for _, command in server.commands[before:]] == ["DEL", "EVALSHA"]


def test_a_slot_that_moved_is_followed_for_that_command_alone() -> None:
    with FakeRedis(lambda _, words: new.as_cluster(words) or ONE) as new:
        moved = [error(f"MOVED {key_slot(b'k')} 127.0.0.1:{new.port}")]

        def answer(connection: int, words: list[str]) -> bytes:
            return old.as_cluster(words) or (ONE if words[0] == "DEL" else moved[0])

        with FakeRedis(answer) as old:
            assert connection(old, cluster=True).exchange([drop("a"), SCRIPT]) == [1, 1]
            counts = old.count("DEL"), new.count("DEL"), new.count("EVAL")
            assert counts == (1, 0, 1)  # in full, since the new server may lack it


def test_what_another_thread_is_doing_with_the_old_connection_goes_on() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def answer(connection: int, words: list[str]) -> bytes:
        if words[0] == "GET":
            asked.set()
            go_on.wait(0.3)  # less than the client waits
            return b"$4\r\nslow\r\n"
        return error("READONLY You can't write") if connection <= 2 else ONE

    with FakeRedis(answer) as server:
        to = connection(server)
        replies: list[object] = []
        slow = threading.Thread(target=lambda: replies.append(to.send(Command("k", ("GET", "k")))))
        slow.start()
        asked.wait()
        assert acquire(to)
        go_on.set()
        slow.join()
        assert replies == ["slow"]
        assert server.count("GET") == 1


def test_ten_threads_make_one_cluster_client() -> None:
    others_are_there = threading.Event()

    def answer(_: int, words: list[str]) -> bytes:
        if words[0] == "CLUSTER" or words[0].startswith("CLUSTER "):
            assert others_are_there.wait(30)  # nobody has a client before all want one
        return server.as_cluster(words) or ONE

    with FakeRedis(answer) as server:
        to = connection(server, cluster=True)
        taken: list[bool] = []
        threads = [threading.Thread(target=lambda: taken.append(acquire(to)), daemon=True) for _ in range(10)]
        for thread in threads:
            thread.start()
        for _ in range(30_000):
            making = to._making
            if server.connections > 1 or (making is not None and len(making._condition._waiters) == 9):  # type: ignore[attr-defined]
                break
            threading.Event().wait(0.001)
        others_are_there.set()
        for thread in threads:
            thread.join(30)
        assert taken == [True] * 10
        assert server.count("COMMAND") == 1


def test_threads_wait_no_longer_for_another_s_cluster_client_than_for_one_of_their_own() -> None:
    go_on = threading.Event()

    def answer(_: int, words: list[str]) -> bytes:
        assert go_on.wait(30)
        return server.as_cluster(words) or ONE

    with FakeRedis(answer) as server:
        to = connection(server, cluster=True, wait=WAIT)
        to._making = Future()  # of a thread that hangs, as in the look-up of a name; or that is not in this process
        with pytest.raises(CacheUnavailable, match="TimeoutError"):
            acquire(to)
        assert server.connections == 0
        go_on.set()
        to._making = None
        assert acquire(to)


def test_cac_10_more_threads_than_connections_do_not_hide_that_the_server_hangs() -> None:
    """Whoever finds no connection left has learned nothing of the server, neither good nor bad."""
    with FakeRedis(lambda *_: SILENCE) as server:
        to = Connection(server.host, server.port, tls=False, cluster=False, most=1)
        told: list[str] = []

        def beside(lines: Any) -> None:
            pool = lines.client.connection_pool
            held = [pool.get_connection() for _ in range(2)]  # others' threads, which wait for the server
            try:
                with pytest.raises(CacheUnavailable, match="MaxConnectionsError"):
                    acquire(to)
            finally:
                for each in held:
                    pool.release(each)
            raise TimeoutError

        for _ in range(to.breaker.failures):
            with pytest.raises(CacheUnavailable) as refused:
                to.run(beside)
            told.append(str(refused.value))
        with pytest.raises(CacheUnavailable, match="not asked"):
            acquire(to)


class Guest:
    """Credentials that are counted."""

    def __init__(self) -> None:
        self.asked = 0
        self.forgotten = 0

    def get_credentials(self) -> tuple[str, str]:
        self.asked += 1
        return "app", CANARY

    def forget(self) -> None:
        self.forgotten += 1


def test_refused_credentials_are_forgotten_and_asked_for_once_more() -> None:
    guest = Guest()

    def answer(connection: int, words: list[str]) -> bytes:
        if words[0] == "AUTH":
            return error("WRONGPASS invalid username-password pair") if connection == 1 else OK
        return ONE

    with FakeRedis(answer) as server:
        assert acquire(Connection(server.host, server.port, tls=False, cluster=False, credentials=guest, wait=PATIENCE))
        assert (guest.asked, guest.forgotten, server.connections) == (2, 1, 2)


def test_i48_credentials_refused_again_are_unavailable_and_never_told() -> None:
    guest = Guest()
    with FakeRedis(lambda *_: error("WRONGPASS invalid username-password pair")) as server:
        with pytest.raises(CacheUnavailable, match="WRONGPASS") as refused:
            acquire(Connection(server.host, server.port, tls=False, cluster=False, credentials=guest, wait=PATIENCE))
        assert CANARY not in str(refused.value)
        assert server.connections == 2


def test_cac_10_a_server_that_is_gone_is_not_asked_for_ten_seconds_and_then_by_one() -> None:
    clock = FakeClock()
    well = threading.Event()
    with FakeRedis(lambda *_: ONE if well.is_set() else None) as server:
        to = connection(server, breaker=Breaker(monotonic=clock.monotonic))
        for _ in range(5):
            with pytest.raises(CacheUnavailable):
                acquire(to)
        assert server.connections == 10  # two tries each
        for _ in range(20):
            with pytest.raises(CacheUnavailable, match="not asked"):
                acquire(to)
        assert server.connections == 10
        clock.pass_(timedelta(seconds=10))
        with pytest.raises(CacheUnavailable):
            acquire(to)
        assert server.connections == 12  # the one look, in vain
        with pytest.raises(CacheUnavailable, match="not asked"):
            acquire(to)
        well.set()
        clock.pass_(timedelta(seconds=10))
        assert acquire(to)
        assert acquire(to)
        assert server.connections == 13


@pytest.mark.parametrize("line", ["READONLY You can't write", "NOAUTH Authentication required.", "LOADING the dataset"])
def test_answers_of_a_server_that_cannot_be_used_open_the_breaker_too(line: str) -> None:
    with FakeRedis(lambda *_: error(line)) as server:
        to = connection(server)
        for _ in range(5):
            with pytest.raises(CacheUnavailable):
                acquire(to)
        with pytest.raises(CacheUnavailable, match="not asked"):
            acquire(to)
        assert server.count("EVALSHA") == 10


def test_an_error_of_the_caller_is_passed_on_and_leaves_the_look_to_the_next() -> None:
    clock = FakeClock()
    breaker = Breaker(failures=1, monotonic=clock.monotonic)
    answers = [None, None, ONE]
    with FakeRedis(lambda *_: answers.pop(0)) as server:
        to = connection(server, breaker=breaker)
        with pytest.raises(CacheUnavailable):
            acquire(to)
        clock.pass_(breaker.pause)
        with pytest.raises(ZeroDivisionError):
            to.run(lambda _: 1 // 0)
        assert acquire(to)
