"""The issuer of the deployed local stack: it publishes its public key on loopback, as identity providers do.

`python -m local.outside.issuer --port 8092 --keys keys.json` runs it by hand. The private key is in a file that its owner alone may
read; who signs reads it, this server never does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from local.outside.server import OutsideHandler, OutsideServer
from local.outside.tokens import ALGORITHM, Issuer, private_key, thumbprint
from local.processes.environment import loopback

if TYPE_CHECKING:
    from shared.clock import Clock

AUDIENCE = "operations"  # that the local stage in cdk.json names
DISCOVERY = "/.well-known/openid-configuration"
KEYS = "/.well-known/jwks.json"
ONLY_OURS = 0o600


def new_key(file: Path) -> None:
    """Make a key that signs, in a new file that only we may read.

    Raises:
        FileExistsError: there is one; a key is never replaced under those who use it.
    """
    text = private_key().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # Never readable by others, not even for the moment between making and changing a mode.
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, ONLY_OURS), "wb") as key:
        key.write(text)


def issuer_at(url: str, file: Path, clock: Clock) -> Issuer:
    """The issuer that signs with the key in a file, as it is known at `url`.

    Raises:
        SettingsError: the address is not on this machine.
        TypeError: the file holds a key of another kind.
    """
    key = serialization.load_pem_private_key(file.read_bytes(), password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        message = f"{file} holds no RSA key, which is all that API Gateway verifies."
        raise TypeError(message)
    return Issuer(loopback(url), AUDIENCE, clock, key, thumbprint(key))


class IssuerServer(OutsideServer):
    """Answers with the two documents that verifiers look for; `keys` is the second."""

    def __init__(self, port: int, keys: dict[str, Any], *, quiet: bool = False) -> None:
        super().__init__(port, _Handler, quiet=quiet)
        self.keys = keys

    @property
    def url(self) -> str:
        """What tokens name as their issuer."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(OutsideHandler):
    def do_GET(self) -> None:  # noqa: N802 - http.server's name for it
        """Publish."""
        server = cast("IssuerServer", self.server)
        match urlsplit(self.path).path:
            case path if path == DISCOVERY:
                self.answer(
                    HTTPStatus.OK,
                    {
                        "issuer": server.url,
                        "jwks_uri": f"{server.url}{KEYS}",
                        "id_token_signing_alg_values_supported": [ALGORITHM],
                    },
                )
            case path if path == KEYS:
                self.answer(HTTPStatus.OK, server.keys)
            case _:
                self.answer(HTTPStatus.NOT_FOUND, {"code": "not_found"})


def main() -> None:
    """Publish until we are stopped."""
    parser = argparse.ArgumentParser(prog="python -m local.outside.issuer", description="The issuer of local tokens.")
    parser.add_argument("--port", type=int, required=True, help="TCP port on 127.0.0.1")
    parser.add_argument("--keys", type=Path, required=True, help="file with the public keys, a JSON Web Key Set")
    options = parser.parse_args()
    keys = json.loads(options.keys.read_text(encoding="utf-8"))
    with contextlib.suppress(KeyboardInterrupt), IssuerServer(options.port, keys) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
