"""Who is let in, and what a change must bring."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

import pytest

from tests.console.visitor import FORM, HERE, PORT, SESSION, TOKEN, Visitor
from tests.ops.desk import Desk
from tests.ops.letters import bury, dead

if TYPE_CHECKING:
    from pathlib import Path

CHANGES = (
    "/change/replay",
    "/change/discard",
    "/change/edit",
    "/letters/payments/m1/edit",
    "/jobs/op_1/cancel",
    "/jobs/op_1/release",
    "/workers/payments/pause",
    "/workers/payments/resume",
    "/deeds/1/stop",
)


def test_the_printed_address_gives_a_cookie_that_no_script_reads_and_an_address_without_the_token(
    tmp_path: Path,
) -> None:
    visitor = Visitor(tmp_path)
    visitor.client.delete_cookie(visitor.guard.cookie, domain="127.0.0.1")
    assert visitor.guard.address == f"{HERE}/?token={TOKEN}"
    answer = visitor.client.get(f"//elsewhere.example/?token={TOKEN}", base_url=HERE)
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/"
    cookie = answer.headers["Set-Cookie"]
    assert f"tahan-console-{PORT}={SESSION}" in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


def test_nobody_is_let_in_without_the_cookie_or_with_a_wrong_token(tmp_path: Path) -> None:
    visitor = Visitor(tmp_path)
    visitor.client.delete_cookie(visitor.guard.cookie, domain="127.0.0.1")
    for path in ("/", "/letters", "/jobs", "/alive", "/?token=guessed", "/nowhere"):
        assert "Open the address that" in visitor.get(path)
        assert visitor.last.status_code == 401
    visitor.client.set_cookie(visitor.guard.cookie, "guessed", domain="127.0.0.1")
    visitor.get("/")
    assert visitor.last.status_code == 401
    assert visitor.client.get("/static/console.css", base_url=HERE).status_code == 200


@pytest.mark.parametrize("host", ["evil.example:8400", "127.0.0.1", "127.0.0.1:8401", "evil.example"])
def test_a_name_that_leads_here_by_other_peoples_dns_is_refused(tmp_path: Path, host: str) -> None:
    visitor = Visitor(tmp_path)
    for path in ("/", f"/?token={TOKEN}", "/static/console.js"):
        assert visitor.client.get(path, base_url=HERE, headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("path", CHANGES)
def test_a_change_needs_the_token_of_our_form_and_no_other_page_behind_it(tmp_path: Path, path: str) -> None:
    visitor = Visitor(tmp_path)
    for form in (None, "", "guessed", SESSION):
        assert "load the page anew" in visitor.post(path, form)
        assert visitor.last.status_code == 403
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        assert "by another page" in visitor.post(path, FORM, headers)
        assert visitor.last.status_code == 403
    visitor.post(path, FORM, {"Origin": HERE, "Sec-Fetch-Site": "same-origin"})
    assert visitor.last.status_code in {404, 409}, "our own form comes through, and is told what is missing"


@pytest.mark.parametrize("path", CHANGES)
def test_a_console_that_only_looks_refuses_each_change_on_the_server(tmp_path: Path, path: str) -> None:
    desk = Desk()
    bury(desk, "k1")
    visitor = Visitor(tmp_path, desk, read_only=True)
    visitor.get("/change/discard?all=1")
    text = visitor.post(path, why="because", number="1", plan="", name="payments")
    assert visitor.last.status_code == 403
    assert "it was started with --read-only" in text
    assert dead(desk) == ["k1"]
    assert not desk.audit


def test_a_console_that_only_looks_shows_no_form_that_changes(tmp_path: Path) -> None:
    desk = Desk()
    bury(desk, "k1")
    visitor = Visitor(tmp_path, desk, read_only=True)
    for path in (
        "/",
        "/letters",
        "/change/replay?all=1",
        "/change/discard?all=1",
        "/letters/payments/m1/edit",
        "/workers/payments",
    ):
        text = visitor.get(path)
        assert visitor.last.status_code == 200
        assert 'method="post"' not in text
        assert "read-only" in text


def test_every_answer_forbids_scripts_frames_and_caches(tmp_path: Path) -> None:
    visitor = Visitor(tmp_path)
    for path in ("/", "/nowhere", "/static/console.js", "/static/nothing", "/?token=guessed", "/jobs/nonsense"):
        visitor.get(path)
        headers = visitor.last.headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'; ")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"


def test_files_are_those_of_the_console_alone(tmp_path: Path) -> None:
    visitor = Visitor(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "outside.md").write_text("# Outside")
    for name in ("%2e%2e/outside", "..%2foutside.md", "x" * 300):
        assert "Outside" not in visitor.get(f"/docs/{name}")
        assert visitor.last.status_code == 404
    for name in ("../app.py", "%2e%2e/app.py", "..%2fapp.py", "%2fetc%2fpasswd"):
        assert visitor.client.get(f"/static/{name}", base_url=HERE).status_code in {401, 404}
        visitor.get(f"/docs/{name}")
        assert visitor.last.status_code == 404


@pytest.mark.parametrize(
    "path",
    ["//evil.example", "/%5Cevil.example", "/%5C%5Cevil.example/x", "//%5Cevil.example?a=1", "/%09/evil.example", "/a"],
)
def test_no_link_of_a_page_leads_to_others_whatever_was_asked_for(tmp_path: Path, path: str) -> None:
    visitor = Visitor(tmp_path)
    answer = visitor.client.get(path, base_url=HERE)
    assert answer.status_code == 404
    links = re.findall(r'(?:href|src|action|data-live)="([^"]*)"', answer.text)
    assert len(links) > 8
    for link in map(html.unescape, links):
        assert re.match(r"/(?![/\\\s])|#", link), link


def test_a_form_that_is_too_large_is_refused(tmp_path: Path) -> None:
    visitor = Visitor(tmp_path)
    visitor.post("/letters/payments/m1/edit", payload="x" * (4 * 2**20))
    assert visitor.last.status_code == 413
