"""The twin of HTTP dependencies: a function answers instead of a server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.dependency import Dependency, Reply


@dataclass(slots=True)
class MemoryTransport:
    """A dependency that answers by a function; without one it cannot be reached."""

    answer: Callable[[str, str, object, object], Reply] | None = None

    def send(  # noqa: PLR0913 - one request
        self,
        dependency: Dependency,
        method: str,
        path: str,
        *,
        body: object,
        headers: object,
        within: timedelta,
    ) -> Reply:
        """Give the function's answer."""
        if self.answer is None or within <= timedelta(0):
            message = f"{dependency.name} cannot be reached."
            raise Unavailable(message, dependency=dependency.name)
        return self.answer(method, path, body, headers)
