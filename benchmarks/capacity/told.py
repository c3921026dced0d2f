"""How numbers are told to people."""

from __future__ import annotations

MINUTE, HOUR, DAY = 60, 3600, 86_400
MOMENT = 1.0


def number(value: float) -> str:
    """Three digits, with thousands apart."""
    return f"{float(f'{value:.3g}'):,.10g}"


def duration(seconds: float) -> str:
    """In the unit that suits it."""
    if seconds < MOMENT:
        return "under 1 s"
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= unit:
            return f"{number(seconds / unit)} {name}"
    return f"{number(seconds)} s"
