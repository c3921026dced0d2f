"""A provider and servers for tests that break things, and the mode in which they are run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from local.outside.payment_provider import Provider
from local.processes.children import Children
from local.stack.valkey import Valkey
from tests.modes import chosen, entered
from tests.serving import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="package", autouse=True)
def mode() -> Iterator[None]:
    """What `make faults MODE=` asks for; by default the world as it is."""
    with entered(chosen()):
        yield


@pytest.fixture
def provider(aws_endpoint: str) -> Iterator[Provider]:
    """A provider that may kill its clients."""
    with serving(Provider(0, may_kill=True)) as provider:
        yield provider


@pytest.fixture(scope="package")
def faults_provider(aws_endpoint: str) -> Iterator[Provider]:
    """One for tests that share it; it kills nobody."""
    with serving(Provider(0)) as provider:
        yield provider


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as children:
        yield children


@pytest.fixture
def new_valkey(children: Children, tmp_path: Path) -> Callable[..., Valkey]:
    """Starts servers that may be broken."""
    made: list[Valkey] = []

    def start(**options: Any) -> Valkey:
        server = Valkey(children, tmp_path / f"valkey-{len(made)}", **options)
        made.append(server)
        server.start()
        return server

    return start
