"""Who may ask the console for what: this machine's user alone, from a page of the console alone. It knows no page.

The port is open to every program and, by way of a browser, to every web page. So: a token that only the terminal has shown is changed
for a cookie; a name that leads here by somebody else's DNS is refused; a change must come from a form that the console has made.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from werkzeug.utils import redirect

from ops.exits import CommandError

if TYPE_CHECKING:
    from werkzeug.wrappers import Request, Response

    from shared.clock import Tokens

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with no-referrer browsers would send no Origin with our own forms
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
LOOKS = frozenset({"GET", "HEAD"})
FORM_FIELD = "form_token"


class NotAllowedError(CommandError):
    """The request is refused before anything is looked at; `code` is its HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Guard:
    """The secrets of one run of the console, and what is demanded of a request.

    Attributes:
        port: of 127.0.0.1 that it is bound to.
        token: in the address that the terminal shows.
        session: the cookie that it is changed for.
        form: in each form.
    """

    port: int
    read_only: bool
    token: str
    session: str
    form: str

    @classmethod
    def new(cls, port: int, tokens: Tokens, *, read_only: bool) -> Guard:
        """A guard with secrets of its own."""
        return cls(port, read_only, tokens(), tokens(), tokens())

    @property
    def address(self) -> str:
        """What people open first."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """The cookie's name. Cookies know no ports: two consoles have one each."""
        return f"tahan-console-{self.port}"

    def entered(self, request: Request) -> Response | None:
        """The answer to somebody who comes with the token: the cookie, and an address without the token. None for others.

        Raises:
            NotAllowedError: the name is not ours, or the token is wrong.
        """
        self._check_name(request)
        given = request.args.get("token")
        if given is None or request.method not in LOOKS:
            return None
        if not _same(given, self.token):
            raise NotAllowedError(401, _OPEN)
        answer = redirect("/", 303)
        answer.set_cookie(self.cookie, self.session, httponly=True, samesite="Strict", path="/")
        return answer

    def check(self, request: Request) -> None:
        """Return if the request may be answered.

        Raises:
            NotAllowedError: with what to do.
        """
        self._check_name(request)
        if not _same(request.cookies.get(self.cookie, ""), self.session):
            raise NotAllowedError(401, _OPEN)
        if request.method in LOOKS:
            return
        if self.read_only:
            raise NotAllowedError(403, "This console only looks: it was started with --read-only. Nothing was changed.")
        self._check_source(request)
        if not _same(request.form.get(FORM_FIELD, ""), self.form):
            raise NotAllowedError(
                403, "The form is not of this run of the console: load the page anew. Nothing was changed."
            )

    def _check_name(self, request: Request) -> None:
        if request.headers.get("Host") not in {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}:
            raise NotAllowedError(
                403, "The console answers under 127.0.0.1 alone: open the address that it has printed."
            )

    def _check_source(self, request: Request) -> None:
        origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
        is_ours = origin is None or urlsplit(origin).netloc == request.headers.get("Host")
        if not is_ours or site not in {None, "same-origin"}:
            raise NotAllowedError(
                403, "The change was asked for by another page than the console's. Nothing was changed."
            )


_OPEN = "Open the address that `tahan console` has printed, with its token: it lets you in."


def _same(given: str, ours: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogatepass"), ours.encode())
