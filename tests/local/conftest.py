"""An issuer of tokens on this machine, for the tests that need one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from local.outside.issuer import IssuerServer, issuer_at, new_key
from shared.clock import SystemClock
from tests.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "key.pem"
    new_key(file)
    return file


@pytest.fixture
def server(key: Path) -> Iterator[IssuerServer]:
    keys = issuer_at("http://127.0.0.1", key, SystemClock()).jwks
    with serving(IssuerServer(0, keys, quiet=True)) as publishing:
        yield publishing
