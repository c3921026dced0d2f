"""One stack for the tests of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from local.outside.payment_provider import Provider
from tests.serving import serving
from tests.stack import Stack, new_stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.stack.valkey import Valkey


@pytest.fixture(scope="module")
def stack(aws_endpoint: str, valkey: Valkey) -> Iterator[Stack]:
    with serving(Provider(0)) as provider:
        yield new_stack(valkey, provider)
