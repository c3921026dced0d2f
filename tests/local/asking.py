"""A client of what listens on this machine."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from local.processes.environment import loopback


def got(url: str, token: str | None = None) -> tuple[int, dict[str, Any]]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(loopback(url), headers=headers)  # noqa: S310 - on this machine
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())
