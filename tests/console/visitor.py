"""Somebody who visits a console over a desk of memory, without a browser and without a port."""

from __future__ import annotations

import html
import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console as Terminal
from werkzeug.test import Client

from ops.console.app import App
from ops.console.guard import FORM_FIELD, Guard
from ops.console.house import House
from tests.ops.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

    from werkzeug.test import TestResponse

PORT = 8400
HERE = f"http://127.0.0.1:{PORT}"
SESSION, FORM, TOKEN = "session-1", "form-1", "token-1"


def house_of(desk: Desk, folder: Path, *, read_only: bool = False, **tools: Any) -> House:
    """A console over this desk; its documents and archives are in the folder."""
    nowhere = Terminal(file=io.StringIO())
    made = replace(desk.tools(nowhere, nowhere), **tools)
    return House(made, "tahan-dev", folder / "archives", folder / "docs", read_only)


class Visitor:
    """A visitor with the cookie, unless told otherwise.

    Attributes:
        last: the answer that was given last.
    """

    def __init__(self, folder: Path, desk: Desk | None = None, *, read_only: bool = False, **tools: Any) -> None:
        self.desk = desk or Desk()
        self.house = house_of(self.desk, folder, read_only=read_only, **tools)
        self.guard = Guard(PORT, read_only, TOKEN, SESSION, FORM)
        self.client = Client(App(self.house, self.guard))
        self.client.set_cookie(self.guard.cookie, SESSION, domain="127.0.0.1")
        self.last: TestResponse

    def get(self, path: str, **headers: str) -> str:
        """Look at a page, and follow where it leads; give its text."""
        self.last = self.client.get(path, base_url=HERE, headers=headers, follow_redirects=True)
        return self.last.text

    def post(self, path: str, form: str | None = FORM, headers: dict[str, str] | None = None, **words: str) -> str:
        """Send a form, and follow where it leads."""
        data = words if form is None else {FORM_FIELD: form, **words}
        self.last = self.client.post(path, base_url=HERE, data=data, headers=headers, follow_redirects=True)
        return self.last.text

    @property
    def plan(self) -> str:
        """The plan that the last page shows."""
        return self.hidden("plan")

    def hidden(self, name: str) -> str:
        """What the forms of the last page say under that name without people."""
        (found,) = set(re.findall(rf'name="{name}" value="([0-9a-f]+)"', self.last.text))
        return str(found)

    def over(self, kind: str) -> Any:
        """The last deed of that kind, when it is over."""
        deed = self.house.deeds.all(kind)[0]
        assert deed.wait(30)
        return deed


def words_of(text: str) -> str:
    """What people read of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())
