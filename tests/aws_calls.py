"""Sees every AWS call of this process, whichever client and thread makes it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from botocore.client import BaseClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLIENT: Any = BaseClient  # its one method that every call goes through


@contextlib.contextmanager
def seeing(see: Callable[[str, str, dict[str, Any]], None]) -> Iterator[None]:
    """Have each call within the block seen, by service, operation and parameters, before it is made."""
    make = CLIENT._make_api_call

    def seen(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        see(self.meta.service_model.service_name, operation, parameters)
        return make(self, operation, parameters)

    CLIENT._make_api_call = seen
    try:
        yield
    finally:
        CLIENT._make_api_call = make
