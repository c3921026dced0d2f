"""What every function that runs no job does around its work: it connects its parts once, and tells its metrics each time."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from shared.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.telemetry import Telemetry

T = TypeVar("T")


def once(connect: Callable[[Settings], T]) -> Callable[[], T]:
    """The parts that `connect` makes of the function's settings: made at the first invocation, not at import, and kept.

    Raises:
        SettingsError: at each invocation, as long as a setting is missing or wrong.
    """

    @cache
    def connected() -> T:
        return connect(Settings.from_environ(os.environ))

    return connected


@contextmanager
def invoked(telemetry: Telemetry, context: Any) -> Iterator[None]:  # noqa: ANN401 - the Lambda context
    """One invocation: what is logged meanwhile names its request, and what was counted is told however it ends."""
    telemetry.invocation(context.aws_request_id)
    try:
        yield
    finally:
        telemetry.flush()
