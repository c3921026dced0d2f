"""Who may come in by the front door: whose tokens API Gateway verifies, or that IAM signs the requests."""

from __future__ import annotations

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shared.errors import DeclarationError


class Identity(BaseModel):
    """The identity of clients, a setting of the stage; without it no front door is deployed.

    Attributes:
        kind: "jwt" for people and apps with tokens of an issuer, "iam" for callers with AWS credentials.
        issuer: of the tokens, as they name it; an https URL.
        audience: for whom the tokens are made; one of these must be named by a token.
        requests_per_second: of all clients together, with bursts of twice as many.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["jwt", "iam"] = "jwt"
    issuer: str | None = None
    audience: tuple[str, ...] = ()
    requests_per_second: int = Field(default=100, ge=1, le=10_000)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.kind == "iam":
            if self.issuer or self.audience:
                message = 'identity of kind "iam" has no issuer and no audience: leave them out, or set kind to "jwt".'
                raise DeclarationError(message)
            return self
        parts = urlsplit(self.issuer or "")
        if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment:
            message = (
                f"identity: issuer={self.issuer!r}: give the issuer of the tokens, like 'https://login.example.com'."
            )
            raise DeclarationError(message)
        if not self.audience:
            message = (
                "identity: audience=[]: name for whom the tokens are made, or anybody's token of this issuer would do."
            )
            raise DeclarationError(message)
        return self
