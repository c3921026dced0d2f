"""What the stand-ins of outside systems share: they read what they know, tell their kinds apart, and run as programs."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from local.outside.inventory_system import KINDS as INVENTORIES
from local.outside.notification_service import KINDS as NOTICES
from local.outside.payment_ledger import BEHAVIOURS
from local.outside.server import fields_of
from local.processes.ports import free_port, listens
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("kinds", [BEHAVIOURS, INVENTORIES, NOTICES])
def test_names_of_kinds_do_not_overlap(kinds: Iterable[str]) -> None:
    assert not [(one, other) for one in kinds for other in kinds if one != other and one.startswith(other)]


@pytest.mark.parametrize("module", ["payment_provider", "inventory_system", "notification_service"])
def test_it_runs_as_a_program_and_ends_when_asked(module: str) -> None:
    port = free_port()
    command = [sys.executable, "-m", f"local.outside.{module}", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:  # noqa: S603 - ours
        until(lambda: listens(port), 20)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            assert json.loads(answer.read()) == {"status": "ok"}
        process.terminate()
        assert process.wait(timeout=10) == -15


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (b'{"version": 2, "user": "ann"}', {"user": "ann", "version": 2}),
        (b'{"version": "2", "user": "ann"}', None),
        (b'{"version": true, "user": "ann"}', None),
        (b'{"version": 2, "user": ""}', None),
        (b'{"version": 2}', None),
        (b'{"version": 2, "user": "ann", "more": 1}', None),
        (b"[]", None),
        (b"{", None),
        (b"\xff", None),
    ],
)
def test_a_body_is_read_if_it_has_all_fields_and_no_more(body: bytes, read: object) -> None:
    assert fields_of(body, {"user": str, "version": int}) == read
