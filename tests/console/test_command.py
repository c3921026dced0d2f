"""`tahan console`: where it is told, and what it refuses before it serves."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest

from ops.console.server import Served
from ops.exits import Exit
from tests.console.visitor import house_of
from tests.ops.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path


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
