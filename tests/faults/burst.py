"""microburst between the functions and moto: a proxy with rules for what goes wrong, and a list of what did."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import urllib.request
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from local.processes.child import Program
from local.processes.ports import free_port, listens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from local.processes.children import Children


class Burst:
    """The proxy, by its control interface."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/_microburst/{path}", data, headers, method=method)  # noqa: S310 - ours
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - ours
            return json.loads(answer.read() or b"null")

    def fired(self) -> list[Any]:
        answer = self.ask("GET", "fired")
        events: list[Any] = answer if isinstance(answer, list) else answer.get("fired", answer.get("events", []))
        return events


def start(children: Children, upstream: str, folder: Path) -> Burst:
    """Start the proxy before this address."""
    port = free_port()
    command = (sys.executable, "-m", "microburst", "--upstream", upstream, "--port", str(port), "--no-resign")
    child = children.start(Program("microburst", command, dict(os.environ), folder / "microburst.log"))
    child.wait_until(lambda: listens(port), timedelta(seconds=30))
    return Burst(port)


@contextlib.contextmanager
def ruled(burst: Burst, *rules: dict[str, Any]) -> Iterator[None]:
    """Have the rules hold in the block; what fired is counted from its beginning."""
    burst.ask("DELETE", "fired")
    burst.ask("POST", "rules", list(rules))
    try:
        yield
    finally:
        burst.ask("POST", "rules", [])
