"""Outside systems: declared once, called with a deadline, their failures sorted into the three that matter."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from shared.errors import DeclarationError
from shared.table import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Dependency:
    """An HTTP service outside the stack. Its base URL is a setting of the stage, by this name.

    `connect` and `timeout` bound one call: no answer within them is Ambiguous once the request was sent.
    """

    name: str
    timeout: timedelta = timedelta(seconds=10)
    connect: timedelta = timedelta(seconds=1)

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            DeclarationError: with the repair.
        """
        if not NAME.fullmatch(self.name):
            message = f"Dependency({self.name!r}): use lower case words joined by '-', like 'payment-provider'."
            raise DeclarationError(message)
        if not timedelta(0) < self.connect <= self.timeout:
            message = f"Dependency({self.name!r}): give 0 < connect ({self.connect}) <= timeout ({self.timeout})."
            raise DeclarationError(message)

    def at_pace(self, pace: float) -> Dependency:
        """The same dependency with its timeout multiplied by `pace`; a connection takes its time, but no more than that."""
        timeout = self.timeout * pace
        return Dependency(self.name, timeout, min(self.connect, timeout))


@dataclass(frozen=True, slots=True)
class Reply:
    """What a dependency answered: the status, and the body as parsed JSON (None where it has none)."""

    status: int
    body: object


class Transport(Protocol):
    """Sends one request to a dependency, once; repeating it is the job's affair, not the transport's."""

    def send(  # noqa: PLR0913 - one request
        self,
        dependency: Dependency,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None,
        headers: Mapping[str, str],
        within: timedelta,
    ) -> Reply:
        """Send, and give back any answer below 500 but 408 and 429; 503 and 429 were not done, other failures may be.

        Raises:
            Unavailable: it was certainly not done (no connection, 429, 503) or says to come again.
            Ambiguous: it may have been done (no answer in time, connection lost, 408, 500 and above).
        """
        ...
