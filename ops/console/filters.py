"""How times, spans and counts are told on the console's pages."""

from __future__ import annotations

from datetime import UTC, datetime

MINUTE, HOUR, DAY = 60, 3600, 86400


def moment(value: datetime | str | None) -> str:
    """A time for people, by UTC."""
    if value is None or value == "":
        return "-"
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return str(value)
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if at.tzinfo is not None else str(value)


def lasting(seconds: float | None) -> str:
    """How long something lasts, roughly."""
    if seconds is None:
        return "-"
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.1f} h" if seconds < DAY else f"{seconds / DAY:.1f} days"


def number(value: float | None) -> str:
    """A count, or a dash where nobody knows."""
    return "-" if value is None else f"{value:,.0f}"
