"""A provider for tests that break things."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from local.provider import Provider
from tests.stack import serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def provider(aws_endpoint: str) -> Iterator[Provider]:
    """A provider that may kill its clients."""
    with serving(Provider(0, may_kill=True)) as provider:
        yield provider
