"""Asks a front door one question over HTTP."""

from __future__ import annotations

from urllib.parse import urlsplit

import urllib3

from ops.exits import CommandError, Exit

SECONDS = 10.0


def check_url(url: str) -> None:
    """Return if a token may go there.

    Raises:
        CommandError: it is no URL, or one that would carry the token in clear.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname != "127.0.0.1":
        message = f"{url!r}: give the front door's URL, which begins with https."
        raise CommandError(message, Exit.REFUSED)


def http_status(url: str, token: str | None) -> int:
    """The status that a GET is answered with; no redirect is followed, nothing is repeated.

    Raises:
        CommandError: the URL is none, would carry the token in clear, or nobody answers.
    """
    check_url(url)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urllib3.PoolManager() as pool:
            return pool.request("GET", url, headers=headers, timeout=SECONDS, retries=False, redirect=False).status
    except urllib3.exceptions.HTTPError as error:
        message = f"The front door gave no answer ({type(error).__name__}): {urlsplit(url).hostname}."
        raise CommandError(message) from error
