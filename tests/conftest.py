"""Real parts shared by a session: moto's server over HTTP for AWS, the real Valkey server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from local.processes.children import Children
from local.stack.valkey import Valkey
from tests.aws import CREDENTIALS
from tests.moto_server import MotoServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def no_way_to_aws() -> Iterator[None]:
    """No test can reach an account, whatever the machine's environment says."""
    before = dict(os.environ)
    for name in list(os.environ):
        if name.startswith("AWS_"):
            del os.environ[name]
    os.environ.update(CREDENTIALS)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session", autouse=True)
def each_request_is_checked() -> Iterator[None]:
    """Botocore checks what a client sends: moto would take what AWS refuses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shared.backends.aws.CHECKED", True)
        yield


@pytest.fixture(scope="session")
def aws_endpoint(no_way_to_aws: None) -> Iterator[str]:
    """The address of moto's server."""
    server = MotoServer()
    server.start()
    os.environ["AWS_ENDPOINT_URL"] = server.endpoint
    yield server.endpoint
    server.stop()


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    """The real Valkey server."""
    with Children() as children:
        server = Valkey(children, tmp_path_factory.mktemp("valkey"))
        server.start()
        yield server
