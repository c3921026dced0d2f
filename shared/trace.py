"""W3C trace context: the name of everything that follows from one request, from the first HTTP header to the last log line.

Read leniently, since a wrong header must never cost a job; written in the one form that everybody reads
(https://www.w3.org/TR/trace-context/).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.clock import Tokens

TRACEPARENT = "traceparent"
_W3C = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_XRAY_ROOT = re.compile(r"(?:^|;)\s*Root=1-([0-9a-f]{8})-([0-9a-f]{24})(?:;|$)")
_XRAY_PARENT = re.compile(r"(?:^|;)\s*Parent=([0-9a-f]{16})(?:;|$)")
SPAN_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Trace:
    """Where something stands in a trace.

    Attributes:
        trace_id: of all that belongs together; 32 hexadecimal digits.
        span_id: of the step that led here; 16 hexadecimal digits.
        flags: two hexadecimal digits, handed on as they came.
    """

    trace_id: str
    span_id: str
    flags: str = "01"

    @property
    def header(self) -> str:
        """The value of a `traceparent` header."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"

    def child(self, tokens: Tokens) -> Trace:
        """A step that follows from this one."""
        return Trace(self.trace_id, tokens()[:SPAN_DIGITS], self.flags)


def begun(tokens: Tokens) -> Trace:
    """A trace that begins here."""
    return Trace(tokens(), tokens()[:SPAN_DIGITS])


def read_trace(header: object) -> Trace | None:
    """Read a `traceparent` header; None if it is none."""
    found = _W3C.fullmatch(header) if isinstance(header, str) else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not trace_id.strip("0") or not span_id.strip("0"):
        return None
    return Trace(trace_id, span_id, flags)


def read_xray(header: str | None) -> Trace | None:
    """The same trace as X-Ray names it (`Root=1-5759e988-bd862e3fe1be46a994272793;Parent=...`); None if it is none."""
    root = _XRAY_ROOT.search(header or "")
    if root is None:
        return None
    parent = _XRAY_PARENT.search(header or "")
    trace_id = root[1] + root[2]
    return Trace(trace_id, parent[1] if parent else trace_id[:SPAN_DIGITS])
