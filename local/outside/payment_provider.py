"""The payment provider stand-in: an HTTP server that can be slow, refuse, and charge although nobody hears of it.

`python -m local.outside.payment_provider --port 8080` runs it by hand, on loopback: POST /v1/charges,
GET /v1/charges?payment_intent_id=, GET /ledger.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qs, urlsplit

import psutil

from local.outside.payment_ledger import KeyReusedError, Ledger
from local.outside.server import LARGEST_BODY, OutsideHandler, OutsideServer, fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from local.outside.server import Step

FIELDS = dict.fromkeys(("amount", "currency", "payment_intent_id", "order_id"), str)


class Provider(OutsideServer):
    """The server; `ledger` is all its state.

    It kills the process of a client only with `may_kill`, and never its own or the one that started it.
    """

    def __init__(self, port: int, *, may_kill: bool = False, quiet: bool = False) -> None:
        super().__init__(port, _Handler, quiet=quiet)
        self.ledger = Ledger()
        self.may_kill = may_kill
        self.killed: list[int] = []

    def kill_peer(self, address: tuple[str, int]) -> None:
        """Kill the process whose end of a connection has this address."""
        spared = {os.getpid(), os.getppid()}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.pid in spared or address not in [link.laddr for link in process.net_connections("tcp")]:
                    continue
                process.send_signal(signal.SIGKILL)
                self.killed.append(process.pid)


class _Handler(OutsideHandler):
    @property
    def provider(self) -> Provider:
        return cast("Provider", self.server)

    def do_GET(self) -> None:  # noqa: N802 - http.server's name for it
        """Answer what happened."""
        address = urlsplit(self.path)
        match address.path:
            case "/health":
                self.answer(HTTPStatus.OK, {"status": "ok"})
            case "/ledger":
                self.answer(HTTPStatus.OK, {**self.provider.ledger.summary(), "killed": self.provider.killed})
            case "/v1/charges":
                intent = parse_qs(address.query).get("payment_intent_id", [""])[0]
                charges = [charge.answer() for charge in self.provider.ledger.charges_of(intent)]
                self.answer(HTTPStatus.OK, {"charges": charges})
            case _:
                self.answer(HTTPStatus.NOT_FOUND, {"code": "not_found"})

    def do_POST(self) -> None:  # noqa: N802 - http.server's name for it
        """Charge, or behave as the intent's prefix says."""
        body = self.rfile.read(min(int(self.headers.get("Content-Length", "0")), LARGEST_BODY))
        key = self.headers.get("Idempotency-Key", "")
        request = fields_of(body, FIELDS)
        if urlsplit(self.path).path != "/v1/charges":
            self.answer(HTTPStatus.NOT_FOUND, {"code": "not_found"})
        elif not key:
            self.answer(HTTPStatus.BAD_REQUEST, {"code": "idempotency_key_missing"})
        elif request is None:
            self.answer(HTTPStatus.BAD_REQUEST, {"code": "invalid_request", "fields": ", ".join(FIELDS)})
        else:
            self._charge(key, request, self.provider.ledger.next_step(request["payment_intent_id"]))

    def _charge(self, key: str, request: Mapping[str, str], step: Step) -> None:
        if step.status is not None:
            self.answer(HTTPStatus(step.status), {"code": step.code}, step.headers)
            return
        try:
            charge, is_new = self.provider.ledger.charge(key, request)
        except KeyReusedError:
            self.answer(HTTPStatus.UNPROCESSABLE_ENTITY, {"code": "idempotency_key_reused"})
            return
        time.sleep(step.delay.total_seconds())
        if step.kills and self.provider.may_kill:
            self.provider.kill_peer(self.client_address)
        if step.kills or not step.answers:
            self.hold()
        else:
            self.answer(HTTPStatus.CREATED if is_new else HTTPStatus.OK, charge.answer())


def main() -> None:
    """Run the provider until it is stopped."""
    parser = argparse.ArgumentParser(
        prog="python -m local.outside.payment_provider", description="The payment provider stand-in."
    )
    parser.add_argument("--port", type=int, required=True, help="TCP port on 127.0.0.1")
    parser.add_argument(
        "--may-kill", action="store_true", help="let pi_kill_* kill the client's process, once an intent"
    )
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt), Provider(options.port, may_kill=options.may_kill) as provider:
        provider.serve_forever()


if __name__ == "__main__":
    main()
