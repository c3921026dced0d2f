"""The guides: what people come with when no alarm sent them, each with its page of `docs/runbooks`, and the index of all pages."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from infra.alarms.alarm import Runbook
from infra.stage.settings import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from infra.alarms.alarm import Alarm, Both

FOLDER = ROOT / "docs" / "runbooks"
INDEX = FOLDER / "README.md"


class Guide(StrEnum):
    """The pages that people look for by what they see; most are an alarm's runbook as well."""

    BACKLOG = "queue-backlog"
    RETRY_STORM = "retries"
    LEAKED_LOCK = "contention"
    DEAD_LETTERS_GROW = "dead-letters-waiting"
    STALE_CACHE = "stale-cache"
    RAN_TWICE = "it-ran-twice"
    RACED = "it-raced"
    STUCK = "it-is-stuck"


COMES_WITH: Mapping[Guide, str] = {
    Guide.BACKLOG: "work piles up, or nothing is done",
    Guide.RETRY_STORM: "the same jobs fail again and again",
    Guide.LEAKED_LOCK: "jobs wait for a lock that nobody gives back",
    Guide.DEAD_LETTERS_GROW: "the dead-letter queue grows",
    Guide.STALE_CACHE: "the job is done and people see the old value",
    Guide.RAN_TWICE: "something was done two times",
    Guide.RACED: "two jobs changed one thing at the same time",
    Guide.STUCK: "a job was asked for and does not end",
}

_HEAD = """# Runbooks

One page for each alarm and for each thing that people come with: what it means, what to look at, what to do, when replay is safe. Lines that are
indented are commands; what stands in `<angle brackets>` is filled in. Nothing on these pages loses a job: what is wrong here can be done again.
This page is written by `python -m infra.alarms.page`; `make drill ARGS=guides` makes each trouble of the first table and follows its page until it is over.
"""


def title_of(page: str) -> str:
    """The heading of a page, without its mark."""
    return (FOLDER / f"{page}.md").read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def index(found: Mapping[str, Iterable[Alarm | Both]]) -> str:
    """The index, with the alarms by what they are of."""
    named: dict[str, list[str]] = {page.value: [] for page in Runbook}
    for of, alarms in found.items():
        for alarm in alarms:
            named[alarm.runbook.value].append(f"{alarm.name} ({of[0].lower()}{of[1:].partition(',')[0]})")
    guides = "\n".join(f"| {COMES_WITH[guide]} | [{title_of(guide)}]({guide}.md) |" for guide in Guide)
    rows = "\n".join(f"| [{title_of(page)}]({page}.md) | {', '.join(alarms)} |" for page, alarms in named.items())
    return f"{_HEAD}\n| you see | page |\n|---|---|\n{guides}\n\n| page | alarms that name it |\n|---|---|\n{rows}\n"
