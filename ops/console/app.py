"""The console as a WSGI application: a guard before everything, a table of pages, and what is said where one cannot be made."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, RequestRedirect, Rule
from werkzeug.wrappers import Request, Response

from ops.console.deeds import NOT_THOUGHT_OF
from ops.console.guard import HEADERS, NotAllowedError
from ops.console.pages import alarms, changes, deeds, edit, jobs, letters, locks, stack, workers
from ops.console.visit import Visit
from ops.exits import CommandError, Exit
from ops.explained import explained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from wsgiref.types import StartResponse, WSGIEnvironment

    from ops.console.guard import Guard
    from ops.console.house import House

STATIC = Path(__file__).resolve().parent / "static"
FILES = {"console.css": "text/css", "console.js": "text/javascript", "icon.svg": "image/svg+xml"}
MOST_BYTES = 4 * 2**20  # of a form: a payload of 1 MiB, escaped
CODES = {Exit.REFUSED: 409, Exit.ABSENT: 404, Exit.LEFT: 409}
PAGES = (stack, letters, changes, edit, jobs, locks, alarms, workers, deeds)


class _Asked(Request):
    max_content_length = MOST_BYTES
    max_form_memory_size = MOST_BYTES


class App:
    """Answers the requests of one run of the console."""

    def __init__(self, house: House, guard: Guard) -> None:
        self.house, self.guard = house, guard
        rules = [(path, page, method) for module in PAGES for path, page, method in module.ROUTES]
        self._pages: dict[str, Callable[..., Response]] = {
            f"{page.__module__}.{page.__name__}": page for _, page, _ in rules
        }
        self._map = Map(
            [
                Rule(path, endpoint=f"{page.__module__}.{page.__name__}", methods=[method])
                for path, page, method in rules
            ],
            merge_slashes=False,
        )

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        request = _Asked(environ)
        answer = self._answered(request)
        for name, value in HEADERS.items():
            answer.headers[name] = value
        return answer(environ, start)

    def _answered(self, request: Request) -> Response:
        tools, told = self.house.speaking()
        visit = Visit(request, self.house, self.guard, tools, told)
        try:
            entered = self.guard.entered(request)
            if entered is not None:
                return entered
            if request.path.startswith("/static/") and request.method in {"GET", "HEAD"}:
                return _file(request.path.removeprefix("/static/"))
            self.guard.check(request)
            endpoint, words = self._map.bind_to_environ(request.environ).match()
            with explained():
                for worker in filter(None, (words.get("worker"), request.args.get("worker"))):
                    visit.demand_worker(worker)
                answer: Response = self._pages[endpoint](visit, **words)
                return answer
        except NotAllowedError as error:
            return _refused(visit, error.code, str(error))
        except HTTPException as error:
            # The router would lead some addresses elsewhere by a redirect: there is no page that wants one.
            code = 404 if isinstance(error, RequestRedirect) else error.code or 500
            return _refused(visit, code, "There is no such page." if code in {404, 405} else f"{error.name}.")
        except CommandError as error:
            self.house.forget()
            return _refused(visit, CODES.get(error.status, 502), str(error))
        except Exception as error:  # noqa: BLE001 - the last one who can tell people
            traceback.print_exc()
            return _refused(visit, 500, NOT_THOUGHT_OF.format(type(error).__name__))


def _refused(visit: Visit, code: int, message: str) -> Response:
    return visit.page("problem", code, message=message, inside=code != 401)  # noqa: PLR2004 - who is not let in sees no menu


def _file(name: str) -> Response:
    if name not in FILES:
        return Response("There is no such file.", 404, mimetype="text/plain")
    return Response((STATIC / name).read_bytes(), mimetype=FILES[name])
