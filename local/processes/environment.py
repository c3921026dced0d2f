"""What a child of the local stack may know: an environment of its own, and loopback addresses only.

Nothing of the caller's AWS settings gets through, whatever its name: what is passed on is listed, the rest is not.
"""

from __future__ import annotations

import ipaddress
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from shared.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ACCOUNT = "000000000000"
REGION = "eu-central-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": ACCOUNT, "AWS_SECRET_ACCESS_KEY": "local", "AWS_SESSION_TOKEN": "local"}
PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def child_environment(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment of a child process: dummy credentials, a fixed region, `folder` as its home and for its files."""
    return {
        **{name: environ[name] for name in PASSED_ON if name in environ},
        **CREDENTIALS,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "NO_PROXY": "*",
    }


def loopback(url: str) -> str:
    """Give `url` back if it is on this machine.

    Raises:
        SettingsError: it is not, or it is no HTTP address.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not _is_loopback(parts.hostname or ""):
        message = f"{url!r} is not on this machine: the local stack talks to http://127.0.0.1 alone."
        raise SettingsError(message)
    return url


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
