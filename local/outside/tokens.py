"""An issuer of development tokens, and the check that API Gateway's JWT authoriser makes of them.

The key is made at start and stays with whoever made it, so a token is worth nothing anywhere else. The rules are those of the
API Gateway developer guide, "Control access to HTTP APIs with JWT authorizers": RSA alone, by the key that `kid` names, and
`iss`, `aud`, `exp`, `nbf`, `iat`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

if TYPE_CHECKING:
    from shared.clock import Clock

ALGORITHM = "RS256"
BITS = 2048
LEEWAY = timedelta(seconds=60)  # clocks differ; more would only lengthen the life of what has ended
LIFE = timedelta(hours=1)
DEMANDED = ("exp", "iss", "sub")


class Unverified(Exception):  # noqa: N818 - what it says of a token
    """The token is not one of this issuer's for this API, or not one for now."""


def private_key() -> rsa.RSAPrivateKey:
    """A new key to sign with."""
    return rsa.generate_private_key(public_exponent=65537, key_size=BITS)


@dataclass(frozen=True, slots=True)
class Issuer:
    """Signs tokens and verifies them.

    Attributes:
        url: what tokens name as their issuer.
        audience: for whom they are made.
    """

    url: str
    audience: str
    clock: Clock
    key: rsa.RSAPrivateKey = field(default_factory=private_key, repr=False)
    kid: str = field(default_factory=lambda: uuid.uuid4().hex)

    def token(self, subject: str, **claims: Any) -> str:  # noqa: ANN401 - claims are JSON
        """A token for a caller, good for an hour; `claims` replace or add, None takes one out."""
        now = self.clock.now()
        whole = {
            "iss": self.url,
            "sub": subject,
            "aud": self.audience,
            "iat": now,
            "nbf": now,
            "exp": now + LIFE,
            **claims,
        }
        kept = {name: value for name, value in whole.items() if value is not None}
        return jwt.encode(kept, self.key, algorithm=ALGORITHM, headers={"kid": self.kid})

    def verify(self, token: str) -> dict[str, Any]:
        """The claims of a token of this issuer.

        Raises:
            Unverified: it is another's, changed, for somebody else, ended or not begun.
        """
        try:
            if jwt.get_unverified_header(token).get("kid") != self.kid:
                raise Unverified
            claims: dict[str, Any] = jwt.decode(
                token,
                self.key.public_key(),
                algorithms=[ALGORITHM],  # never what the token itself says
                issuer=self.url,
                audience=self.audience,
                options={"require": list(DEMANDED), "verify_exp": False, "verify_nbf": False, "verify_iat": False},
            )
        except jwt.PyJWTError as error:
            raise Unverified from error
        self._check_times(claims)
        return claims

    def _check_times(self, claims: dict[str, Any]) -> None:
        """By the clock given, which the library does not take."""
        now = self.clock.now().timestamp()
        leeway = LEEWAY.total_seconds()
        try:
            ended = float(claims["exp"]) + leeway <= now
            begun = all(float(claims.get(name, 0)) - leeway <= now for name in ("nbf", "iat"))
        except (TypeError, ValueError) as error:
            raise Unverified from error
        if ended or not begun:
            raise Unverified

    @property
    def jwks(self) -> dict[str, list[dict[str, Any]]]:
        """The public key, as an issuer publishes it."""
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**public, "kid": self.kid, "alg": ALGORITHM, "use": "sig"}]}


def thumbprint(key: rsa.RSAPrivateKey) -> str:
    """The name of a key that follows from the key alone (RFC 7638): two processes with one key call it the same."""
    public: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    named = json.dumps({name: public[name] for name in ("e", "kty", "n")}, separators=(",", ":"))
    return base64.urlsafe_b64encode(hashlib.sha256(named.encode()).digest()).decode().rstrip("=")


def stringified(claims: dict[str, Any]) -> dict[str, str]:
    """Claims as API Gateway hands them on: every one a string, a list in brackets."""
    return {name: _text(value) for name, value in claims.items()}


def _text(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case list():
            return f"[{' '.join(map(_text, value))}]"
        case datetime():
            return str(int(value.timestamp()))
        case _:
            return str(value)
