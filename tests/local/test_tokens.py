"""Development tokens: made by this process's issuer, for this API, for now; nothing else gets in (API2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import jwt
import pytest

from local.outside.tokens import ALGORITHM, LEEWAY, LIFE, Issuer, Unverified, stringified
from tests.world import START, FakeClock

ISSUER = Issuer("https://login.example.com", "operations", FakeClock())
MOMENT = timedelta(seconds=1)


def test_a_token_says_who_calls() -> None:
    claims = ISSUER.verify(ISSUER.token("user-1", role="reader"))
    assert (claims["sub"], claims["iss"], claims["role"]) == ("user-1", ISSUER.url, "reader")


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.example.com"},
        {"iss": None},
        {"aud": "elsewhere"},
        {"aud": None},
        {"sub": None},
        {"exp": None},
        {"exp": START - LEEWAY},
        {"exp": "soon"},
        {"exp": [1]},
        {"nbf": START + LEEWAY + MOMENT},
        {"iat": START + LEEWAY + MOMENT},
    ],
    ids=str,
)
def test_api2_a_token_that_is_anothers_or_not_for_now_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(Unverified):
        ISSUER.verify(ISSUER.token("user-1", **claims))


@pytest.mark.parametrize(
    "claims", [{"exp": START - LEEWAY + MOMENT}, {"nbf": START + LEEWAY}, {"aud": ["elsewhere", "operations"]}], ids=str
)
def test_clocks_may_differ_by_a_minute(claims: dict[str, Any]) -> None:
    assert ISSUER.verify(ISSUER.token("user-1", **claims))["sub"] == "user-1"


def test_a_token_ends_after_an_hour() -> None:
    clock = FakeClock()
    issuer = replace(ISSUER, clock=clock)
    token = issuer.token("user-1")
    clock.pass_(LIFE + LEEWAY - MOMENT)
    issuer.verify(token)
    clock.pass_(MOMENT)
    with pytest.raises(Unverified):
        issuer.verify(token)


def forged() -> dict[str, str]:
    claims = jwt.decode(ISSUER.token("user-1"), options={"verify_signature": False})
    stranger = Issuer(ISSUER.url, ISSUER.audience, ISSUER.clock)
    head, body, signature = ISSUER.token("user-1").split(".")
    other = ISSUER.token("user-2").split(".")
    return {
        "no token": "",
        "no JWT": "abc",
        "not ASCII": "é.é.é",
        "another key": stranger.token("user-1"),
        "another key under this kid": replace(stranger, kid=ISSUER.kid).token("user-1"),
        "no kid": jwt.encode(claims, ISSUER.key, algorithm=ALGORITHM),
        "another kid": replace(ISSUER, kid="another").token("user-1"),
        "alg none": jwt.encode(claims, "", algorithm="none", headers={"kid": ISSUER.kid}),
        "the public key as a secret": jwt.encode(claims, "s" * 64, algorithm="HS256", headers={"kid": ISSUER.kid}),
        "another RSA": jwt.encode(claims, ISSUER.key, algorithm="PS256", headers={"kid": ISSUER.kid}),
        "no signature": f"{head}.{body}.",
        "another's signature": f"{head}.{body}.{other[2]}",
        "another's claims": f"{head}.{other[1]}.{signature}",
    }


@pytest.mark.parametrize("kind", forged())
def test_api2_a_token_that_this_issuer_did_not_sign_is_refused(kind: str) -> None:
    with pytest.raises(Unverified):
        ISSUER.verify(forged()[kind])


def test_the_published_key_verifies_and_holds_nothing_private() -> None:
    (published,) = ISSUER.jwks["keys"]
    assert set(published) == {"kty", "n", "e", "key_ops", "kid", "alg", "use"}
    key = jwt.PyJWK.from_dict(published)
    unchecked = {"verify_aud": False, "verify_exp": False, "verify_nbf": False, "verify_iat": False}
    assert jwt.decode(ISSUER.token("u"), key, algorithms=[ALGORITHM], options=unchecked)["sub"] == "u"  # type: ignore[arg-type]


def test_claims_are_handed_on_as_strings() -> None:
    claims = {"sub": "u", "exp": 7, "admin": True, "aud": ["a", "b"], "at": START}
    assert stringified(claims) == {"sub": "u", "exp": "7", "admin": "true", "aud": "[a b]", "at": "1767225600"}
