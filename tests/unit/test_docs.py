"""What the documents name is there: files behind links, and the tests that are said to show a promise."""

from __future__ import annotations

import re
from dataclasses import fields
from fnmatch import fnmatch
from pathlib import Path

import pytest

from functions.payments import capture_payment
from shared.failpoints import Failpoint
from shared.job import JobTypes
from shared.unit_of_work import UnitOfWork
from shared.wire.parsing import read_message, typed_payload

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")})
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
JOB_TYPES = JobTypes.of(capture_payment)
TEST = re.compile(r"`(test_[a-z0-9_*]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "faults.md"], ids=lambda page: page.name)
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    there = {name for source in sources for name in re.findall(r"def (test_\w+)", source)}
    named = TEST.findall(page.read_text(encoding="utf-8"))
    assert named
    assert [name for name in named if not any(fnmatch(test, name) for test in there)] == []


def test_the_page_of_faults_names_every_failpoint() -> None:
    page = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    assert [point for point in Failpoint if f"`{point}`" not in page] == []


MESSAGE = re.compile(r"""\{"job_type": "capture-payment"[^`]*?\}\}""")


def test_every_message_that_a_page_shows_is_one_that_the_consumer_reads() -> None:
    found = {page: MESSAGE.findall(page.read_text(encoding="utf-8")) for page in PAGES}
    assert {page.name for page, messages in found.items() if messages} >= {"README.md", "from-another-language.md"}
    for text in [message for messages in found.values() for message in messages]:
        typed_payload(read_message(text), JOB_TYPES)


def test_whatever_a_page_says_of_a_unit_of_work_it_has() -> None:
    there = {*dir(UnitOfWork), *(each.name for each in fields(UnitOfWork))}
    for page in PAGES:
        named = set(re.findall(r"\bwork\.([a-z_]+)", page.read_text(encoding="utf-8")))
        assert named <= there, f"{page.name}: {named - there}"
