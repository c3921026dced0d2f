"""Alarms with their state, and the pages that say what to do: docs/ as it stands beside this code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markupsafe import Markup

from ops.exits import CommandError, Exit
from ops.stack.alarms import alarms_of

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from ops.console.visit import Visit

NAME = re.compile(r"(?:runbooks/)?[a-z0-9-]{1,80}")


def alarms(visit: Visit) -> Response:
    """All alarms, what rings first."""
    every = alarms_of(visit.stack, visit.tools)
    written = {path.stem for path in (visit.house.docs / "runbooks").glob("*.md")}
    ringing = sum(each.alarm.state == "ALARM" for each in every)
    return visit.page("alarms", over=False, every=every, written=written, ringing=ringing)


def text(visit: Visit, name: str) -> Response:
    """A page of docs/; its links lead to others as they do there.

    Raises:
        CommandError: there is none.
    """
    if name.endswith(".md"):
        name = name.removesuffix(".md")
    path = visit.house.docs / f"{name}.md"
    if not NAME.fullmatch(name) or not path.is_file():
        message = f"The page docs/{name}.md is not written yet."
        raise CommandError(message, Exit.ABSENT)
    made = MarkdownIt("commonmark", {"html": False}).enable("table").render(path.read_text(encoding="utf-8"))
    return visit.page("text", name=name, made=Markup(made))  # noqa: S704 - HTML in it is escaped


ROUTES = (("/alarms", alarms, "GET"), ("/docs/<path:name>", text, "GET"))
