"""The local issuer: its documents let others verify what only the holder of its key file can sign."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jwt
import pytest

from local.outside.issuer import AUDIENCE, DISCOVERY, KEYS, IssuerServer, issuer_at, new_key
from local.outside.tokens import ALGORITHM
from shared.clock import SystemClock
from shared.errors import SettingsError
from tests.local.asking import got

if TYPE_CHECKING:
    from pathlib import Path

CLOCK = SystemClock()


def test_only_we_may_read_the_key_that_signs_and_it_is_never_replaced(key: Path) -> None:
    assert key.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        new_key(key)


def test_the_documents_lead_to_the_key_that_verifies_and_hold_nothing_private(server: IssuerServer, key: Path) -> None:
    status, discovered = got(f"{server.url}{DISCOVERY}")
    assert (status, discovered["issuer"]) == (200, server.url)
    _, keys = got(discovered["jwks_uri"])
    (published,) = keys["keys"]
    assert set(published).isdisjoint({"d", "p", "q", "dp", "dq", "qi"})

    token = issuer_at(server.url, key, CLOCK).token("user-1")

    assert jwt.get_unverified_header(token)["kid"] == published["kid"]
    verifier = jwt.PyJWK.from_dict(published)
    claims = jwt.decode(token, verifier, algorithms=[ALGORITHM], audience=AUDIENCE, issuer=server.url)
    assert claims["sub"] == "user-1"


def test_everything_else_is_absent(server: IssuerServer) -> None:
    assert got(f"{server.url}/key.pem")[0] == 404
    assert got(f"{server.url}{KEYS}/")[0] == 404


def test_whoever_reads_the_key_file_signs_as_the_same_issuer(key: Path) -> None:
    one, other = (issuer_at("http://127.0.0.1:8092", key, CLOCK) for _ in range(2))
    assert one.verify(other.token("user-1"))["sub"] == "user-1"


def test_an_issuer_elsewhere_is_not_ours(key: Path) -> None:
    with pytest.raises(SettingsError):
        issuer_at("https://login.example.com", key, CLOCK)


def test_a_key_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - this test alone makes such a key
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - as above

    file = tmp_path / "key.pem"
    private = ed25519.Ed25519PrivateKey.generate()
    file.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    with pytest.raises(TypeError, match="RSA"):
        issuer_at("http://127.0.0.1", file, CLOCK)
