"""Who may come in by the front door: whose tokens API Gateway verifies, or that IAM signs the requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shared.errors import DeclarationError
from shared.settings import OwnerLimits

if TYPE_CHECKING:
    from urllib.parse import SplitResult

MOST_COUNTED = 2000  # keys of an index fit into the one megabyte that a query reads at once


class Identity(BaseModel):
    """The identity of clients, a setting of the stage; without it no front door is deployed.

    Attributes:
        kind: "jwt" for people and apps with tokens of an issuer, "iam" for callers with AWS credentials.
        issuer: of the tokens, as they name it; an https URL. The default of the stack's parameter `Issuer`.
        audience: for whom the tokens are made; one of these must be named by a token.
        requests_per_second: of all clients together, with bursts of twice as many.
        owner_requests_per_second: of one caller, of any kind; refused beyond with 429.
        owner_burst: requests of one caller at once after a rest.
        owner_unfinished: operations of one caller that have not ended; about so many, since the count is a moment behind.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["jwt", "iam"] = "jwt"
    issuer: str | None = None
    audience: tuple[str, ...] = ()
    requests_per_second: int = Field(default=100, ge=1, le=10_000)
    owner_requests_per_second: int = Field(default=20, ge=1, le=10_000)
    owner_burst: int = Field(default=40, ge=1, le=10_000)
    owner_unfinished: int = Field(default=1000, ge=1, le=MOST_COUNTED)

    @property
    def burst(self) -> int:
        """Requests of all clients together at once after a rest."""
        return 2 * self.requests_per_second

    @property
    def owner_limits(self) -> OwnerLimits:
        """What one caller may ask, as the function is told."""
        return OwnerLimits(self.owner_requests_per_second, self.owner_burst, self.owner_unfinished)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.kind == "iam":
            if self.issuer or self.audience:
                message = 'identity of kind "iam" has no issuer and no audience: leave them out, or set kind to "jwt".'
                raise DeclarationError(message)
            return self
        parts = urlsplit(self.issuer or "")
        if not _is_trusted(parts) or parts.query or parts.fragment:
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


def _is_trusted(issuer: SplitResult) -> bool:
    """Keys come by https, or from this machine: the local stack's issuer is on loopback, where AWS never looks."""
    return bool(issuer.hostname) and (
        issuer.scheme == "https" or (issuer.scheme == "http" and issuer.hostname == "127.0.0.1")
    )
