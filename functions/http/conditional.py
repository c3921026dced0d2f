"""Conditional requests (RFC 9110, section 13): reading If-None-Match and If-Match, and comparing ETags."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shared.errors import Malformed

LONGEST = 1000
_ETAG = re.compile(r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")')
# Empty elements are read over (RFC 9110, section 5.6.1.2). Each blank has one way to be read, so none is tried again.
_LIST = re.compile(rf"(?:[ \t]*,)*[ \t]*{_ETAG.pattern}(?:[ \t]*,(?:[ \t]*{_ETAG.pattern})?)*")


@dataclass(frozen=True, slots=True)
class ETags:
    """What a client says that it has: some ETags, or whatever there is (`*`)."""

    strong: frozenset[str]
    weak: frozenset[str]
    anything: bool = False

    def has(self, etag: str) -> bool:
        """Whether the client has this representation; compared weakly, as for If-None-Match."""
        return self.anything or etag in self.strong or etag in self.weak

    def names(self, etag: str) -> bool:
        """Whether the client means exactly this representation; compared strongly, as for If-Match."""
        return self.anything or etag in self.strong


def read_etags(header: str | None, name: str) -> ETags | None:
    """The ETags of a header; None if the request has none such.

    Raises:
        Malformed: it is no list of ETags; its detail names the header.
    """
    if header is None:
        return None
    text = header.strip()
    if text == "*":
        return ETags(frozenset(), frozenset(), anything=True)
    if len(text) > LONGEST or not _LIST.fullmatch(text):
        raise Malformed("invalid-etag", f'{name}: expected one ETag or several, like "7"')
    found = _ETAG.findall(text)
    return ETags(frozenset(tag for weak, tag in found if not weak), frozenset(tag for weak, tag in found if weak))
