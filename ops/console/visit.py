"""One request: its words, the tools that answer it, and how a page is made of what they say."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from werkzeug.utils import redirect
from werkzeug.wrappers import Response

from ops.console.filters import lasting, moment, number
from ops.console.guard import FORM_FIELD
from ops.exits import CommandError, Exit

if TYPE_CHECKING:
    import io
    from collections.abc import Mapping

    from werkzeug.wrappers import Request

    from ops.console.guard import Guard
    from ops.console.house import House
    from ops.stack.deployed import Deployed
    from ops.tools import Tools

HERE = Path(__file__).resolve().parent
LIVE = "X-Part"  # a live part of a page is asked for with it; the answer says with OVER that nothing more will come
OVER = "X-Over"
DIGITS = 9
PAGES = (
    ("/", "Stack"),
    ("/letters", "Dead letters"),
    ("/jobs", "Jobs"),
    ("/operations", "Operations"),
    ("/locks", "Locks"),
    ("/alarms", "Alarms"),
    ("/deeds", "Changes"),
)
# Under which of them a page stands.
BELOW = (*((page, page) for page, _ in PAGES if page != "/"), ("/change", "/letters"), ("/docs", "/alarms"))


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,  # whatever others have written is text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(moment=moment, lasting=lasting, number=number)
    return made


def mark_of(*seen: object) -> str:
    """A mark of what a page has shown, by which its form tells whether that is still so."""
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


ENVIRONMENT = _environment()


@dataclass(slots=True)
class Visit:
    """A request and what answers it.

    Attributes:
        tools: those of the command line; what they tell people is in `told`.
    """

    request: Request
    house: House
    guard: Guard
    tools: Tools
    told: io.StringIO

    @property
    def stack(self) -> Deployed:
        """The stack.

        Raises:
            CommandError: there is none.
        """
        return self.house.stack

    def demand_worker(self, name: str) -> None:
        """Return if the stack runs that worker.

        Raises:
            CommandError: it runs none of that name, or there is no stack.
        """
        stack = self.stack
        try:
            stack.workers(name)
        except CommandError as error:
            raise CommandError(str(error), Exit.ABSENT) from error

    @property
    def address(self) -> str:
        r"""Where this page is, for links to it: within the console whatever was asked for, since `//x` and `/\x` lead elsewhere."""
        query = self.request.query_string.decode("latin-1")
        return f"/{quote(self.request.path.lstrip('/'))}{f'?{query}' if query else ''}"

    @property
    def is_live(self) -> bool:
        """Whether only the live part of the page is asked for."""
        return self.request.headers.get(LIVE) is not None

    def word(self, name: str) -> str | None:
        """What was said under that name, in the form or else in the address; None where nothing."""
        given = self.request.form.get(name) or self.request.args.get(name) or ""
        return given.strip() or None

    def typed(self, usual: Mapping[str, str], given: bool) -> dict[str, str]:  # noqa: FBT001 - whether anything was
        """What a form's fields show: what is usual, or what people have just typed into them, if that was given."""
        return {name: self.request.form.get(name, "") if given else text for name, text in usual.items()}

    def need(self, name: str, told: str) -> str:
        """The same, where it must be said.

        Raises:
            CommandError: it is missing.
        """
        given = self.word(name)
        if given is None:
            message = f"{told} is missing. Nothing was changed."
            raise CommandError(message, Exit.REFUSED)
        return given

    def whole(self, name: str, usual: int, most: int) -> int:
        """A number that was said under that name.

        Raises:
            CommandError: it is none, or out of bounds.
        """
        text = self.word(name) or str(usual)
        if not text.isascii() or not text.isdigit() or len(text) > DIGITS or int(text) > most:
            message = f"{name}: give a number from 0 to {most}."
            raise CommandError(message, Exit.REFUSED)
        return int(text)

    def demand_seen(self, mark: str) -> None:
        """Return if what is to be changed is as the page has shown it.

        Raises:
            CommandError: it is not.
        """
        if self.word("seen") != mark:
            message = "It has changed since it was looked at: nothing was done. Look again."
            raise CommandError(message, Exit.LEFT)

    def page(self, template: str, status: int = 200, *, over: bool = True, **values: Any) -> Response:  # noqa: ANN401 - of any template
        """A page; or its live part, if that is asked for. `over` says that nothing in it will change by itself."""
        path = self.request.path
        text = ENVIRONMENT.get_template(f"{template}.html").render(
            pages=PAGES,
            here=next((page for begin, page in BELOW if path.startswith(begin)), "/"),
            layout="part.html" if self.is_live else "page.html",
            address=self.address,
            stack_name=self.house.name,
            read_only=self.house.read_only,
            form_field=FORM_FIELD,
            form_token=self.guard.form,
            notices=[line for line in self.told.getvalue().splitlines() if line.strip()],
            over=over,
            **values,
        )
        answer = Response(text, status, mimetype="text/html")
        if over:
            answer.headers[OVER] = "1"
        return answer

    def to(self, path: str) -> Response:
        """An answer that leads on after a change."""
        return redirect(path, 303)
