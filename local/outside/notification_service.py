"""The outside notification service's stand-in: slow, refused, lost, or asked twice; it sends one notice for each key.

`python -m local.outside.notification_service --port 8093` runs it by hand, on loopback: POST /v1/notices, GET /ledger.
"""

from __future__ import annotations

import argparse
import contextlib
import threading
import time
from collections import Counter
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from local.outside.server import (
    LARGEST_BODY,
    LIMITED,
    UNAVAILABLE,
    Behaviour,
    OutsideHandler,
    OutsideServer,
    Step,
    fields_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH = "/v1/notices"
FIELDS = {"user_id": str, "invoice_id": str, "version": int, "gross": str, "currency": str}
BUSY = Step(status=409, code="in_progress")
# How requests are treated, by the beginning of the invoice's id; all others are taken at once.
KINDS: Mapping[str, Behaviour] = {
    "slow-": Behaviour(then=Step(delay=timedelta(milliseconds=300))),
    "503x2-": Behaviour(first=(UNAVAILABLE, UNAVAILABLE)),
    "500-": Behaviour(first=(Step(status=500, code="broken"),)),
    "429-": Behaviour(first=(LIMITED,)),
    "lost-": Behaviour(first=(Step(answers=False),)),  # the notice is sent, and nobody hears of it
    "busy-": Behaviour(first=(BUSY,)),
    "absent-": Behaviour(then=Step(status=404, code="unknown_user")),
    "forbidden-": Behaviour(then=Step(status=403, code="forbidden")),
}


class Notices:
    """All notices, and how often each invoice's was asked for. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._sent: dict[str, dict[str, Any]] = {}

    def next_step(self, invoice_id: str) -> Step:
        """Count a request about the invoice and tell how it is treated."""
        with self._lock:
            seen = self._requests[invoice_id]
            self._requests[invoice_id] += 1
        kind = next((kind for prefix, kind in KINDS.items() if invoice_id.startswith(prefix)), Behaviour())
        return kind.step(seen)

    def send(self, key: str, request: Mapping[str, Any]) -> tuple[str, bool] | None:
        """Send a notice once for its key: its id, and whether it is new; None if the key was used for another notice."""
        with self._lock:
            is_new = key not in self._sent
            known = self._sent.setdefault(key, dict(request))
            number = list(self._sent).index(key) + 1
        return (f"notice-{number}", is_new) if known == request else None

    def summary(self) -> dict[str, object]:
        """Everything, for those who check."""
        with self._lock:
            return {
                "notices": [{"key": key, **request} for key, request in self._sent.items()],
                "requests_by_invoice": dict(self._requests),
            }


class NotificationService(OutsideServer):
    """The server; `notices` are all its state."""

    def __init__(self, port: int, *, quiet: bool = False) -> None:
        super().__init__(port, _Handler, quiet=quiet)
        self.notices = Notices()


class _Handler(OutsideHandler):
    @property
    def notices(self) -> Notices:
        return cast("NotificationService", self.server).notices

    def do_GET(self) -> None:  # noqa: N802 - http.server's name for it
        """Answer what there is to check."""
        match urlsplit(self.path).path:
            case "/health":
                self.answer(HTTPStatus.OK, {"status": "ok"})
            case "/ledger":
                self.answer(HTTPStatus.OK, self.notices.summary())
            case _:
                self.answer(HTTPStatus.NOT_FOUND, {"code": "not_found"})

    def do_POST(self) -> None:  # noqa: N802 - http.server's name for it
        """Send a notice, or behave as the invoice's prefix says."""
        body = self.rfile.read(min(int(self.headers.get("Content-Length", "0")), LARGEST_BODY))
        request = fields_of(body, FIELDS)
        key = self.headers.get("Idempotency-Key", "")
        if urlsplit(self.path).path != PATH:
            self.answer(HTTPStatus.NOT_FOUND, {"code": "not_found"})
        elif not key or request is None:
            self.answer(HTTPStatus.BAD_REQUEST, {"code": "invalid_request", "fields": ", ".join(FIELDS)})
        else:
            self._send(key, request, self.notices.next_step(request["invoice_id"]))

    def _send(self, key: str, request: Mapping[str, Any], step: Step) -> None:
        if step.status is not None:
            self.answer(HTTPStatus(step.status), {"code": step.code}, step.headers)
            return
        sent = self.notices.send(key, request)
        if sent is None:
            self.answer(HTTPStatus.UNPROCESSABLE_ENTITY, {"code": "idempotency_key_reused"})
            return
        time.sleep(step.delay.total_seconds())
        if not step.answers:
            self.hold()
            return
        notice_id, is_new = sent
        self.answer(HTTPStatus.CREATED if is_new else HTTPStatus.OK, {"notice_id": notice_id})


def main() -> None:
    """Run the service until it is stopped."""
    parser = argparse.ArgumentParser(
        prog="python -m local.outside.notification_service", description="The outside notification service's stand-in."
    )
    parser.add_argument("--port", type=int, required=True, help="TCP port on 127.0.0.1")
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt), NotificationService(options.port) as service:
        service.serve_forever()


if __name__ == "__main__":
    main()
