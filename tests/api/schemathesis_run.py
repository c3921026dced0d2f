"""Runs Schemathesis against the front door that a settings object names: over HTTP, with a token, by the committed document.

What is undocumented must not be answered, and nothing may be answered with 5xx.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from functions import front_door
from functions.http import reads, resources
from functions.http.routes import ROUTES
from functions.openapi.document import PAGE
from local.invoking.http_api import HttpApi
from local.outside.tokens import LIFE, Issuer
from shared.clock import SystemClock
from tests.serving import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from local.invoking.http_api import Call
    from shared.settings import Settings
    from shared.table import Table

LOGIN = "https://login.example.com"
LEFT_OUT = (
    "unsupported_method",  # API Gateway answers a method that no route has with 404
    "allow_header_conformance",  # the same
    "use_after_free",  # a cancelled operation is still there to be looked at
    "ensure_resource_availability",  # and an operation is found by its own id alone
    "positive_data_acceptance",  # a `next` that nobody gave and a key that was used are refused, and no schema can say so
)


@contextlib.contextmanager
def serving_door(settings: Settings) -> Iterator[HttpApi]:
    """The front door over HTTP, for those who bring a token of its issuer."""
    with served(front_door.connect(settings).handle) as api:
        yield api


@contextlib.contextmanager
def served(handle: Callable[[dict[str, Any], Call], dict[str, Any]]) -> Iterator[HttpApi]:
    """Any handler over HTTP."""
    api = HttpApi(0, handler=handle, routes=ROUTES, issuer=Issuer(LOGIN, "operations", SystemClock()))
    with serving(api):
        yield api


def front_door_tables() -> set[Table]:
    """The business tables that the front door reads."""
    return {table for table, _ in (*reads.TABLES, *resources.TABLES)}


def run(api: HttpApi, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One run, the same each time for the same arguments; its exit status is 0 if nothing was found."""
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", str(PAGE), "--url", api.url),
        *("--header", f"Authorization: Bearer {api.issuer.token('tester', exp=api.issuer.clock.now() + 9 * LIFE)}"),
        *("--checks", "all", "--exclude-checks", ",".join(LEFT_OUT)),
        *("--generation-deterministic", "--request-timeout", "60", "--no-color", *arguments),
    ]
    return subprocess.run(  # noqa: S603 - our own words
        command,
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
        timeout=timedelta(hours=1).total_seconds(),
    )
