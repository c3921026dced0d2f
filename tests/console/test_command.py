"""`tahan console`: where it is told, and what it refuses before it serves."""

from __future__ import annotations

import io
import signal
import socket
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from ops.console.server import Served, _Quiet
from ops.exits import Exit
from tests.console.visitor import house_of
from tests.ops.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

    from ops.console.deeds import Underway


def test_the_address_is_told_to_people_and_to_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Served, "forever", lambda self: self.server.server_close())
    desk = Desk()
    assert desk.run("console", "--read-only") == Exit.DONE
    assert desk.out.startswith("http://127.0.0.1:")
    assert "only looks" in desk.err
    assert desk.run("console", "--json") == Exit.DONE
    assert desk.json["address"].endswith(f"/?token={desk.token}")


def test_a_wrong_stack_or_port_is_told_before_anything_is_served() -> None:
    desk = Desk()
    assert desk.run("console", "--stack", "other") == Exit.NOT_DONE
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert desk.run("console", "--port", str(taken.getsockname()[1])) == Exit.REFUSED
    assert "is taken" in desk.err


def test_whoever_connects_and_says_nothing_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.console.server._Quiet.timeout", 0.2)
    served = Served(house_of(Desk(), tmp_path), 0)
    thread = served.beside()
    with socket.create_connection(("127.0.0.1", served.guard.port), timeout=10) as silent:
        assert silent.recv(1) == b""
    with socket.create_connection(("127.0.0.1", served.guard.port), timeout=10) as kept:
        kept.sendall(f"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1:{served.guard.port}\r\n\r\n".encode())
        received = b""
        while more := kept.recv(65536):
            received += more
        assert received.startswith(b"HTTP/1.1 200")
    served.stop()
    thread.join()


def test_idle_connections_have_an_end() -> None:
    assert _Quiet.timeout is not None
    assert 10 < _Quiet.timeout <= 60


def test_ctrl_c_stops_what_is_under_way_and_says_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Underway] = []
    forever, handlers = Served.forever, []

    def interrupted(self: Served) -> None:
        app: Any = self.server.app
        work = threading.Event()
        begun.append(app.house.deeds.begin("Replay of all", "replay", io.StringIO(), lambda _: work.wait(10)))
        monkeypatch.setattr(self.server, "service_actions", ctrl_c)
        forever(self)

    def ctrl_c() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Served, "forever", interrupted)
    monkeypatch.setattr("signal.signal", lambda *words: handlers.append(words))
    desk = Desk()
    assert desk.run("console") == Exit.DONE
    assert "are waited for, some seconds; Ctrl-C once more ends at once.\n  Replay of all" in desk.err
    assert begun[0].is_stopping
    assert handlers == [(signal.SIGINT, signal.SIG_DFL)]


def test_it_answers_on_this_machine_alone_and_writes_no_token_anywhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    served = Served(house_of(Desk(), tmp_path), 0)
    assert served.server.server_address[0] == "127.0.0.1"
    thread = served.beside()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor())
    with opener.open(served.guard.address, timeout=10) as answer:
        text = answer.read().decode()
        assert answer.status == 200
    assert "The stack" in text
    assert served.guard.token not in text
    with pytest.raises(urllib.error.HTTPError):
        opener.open(f"{served.guard.address}x", timeout=10)
    served.stop()
    thread.join()
    out, err = capfd.readouterr()
    assert served.guard.token not in out + err
