"""Who may come in is said by the stage, and an identity that would let anybody in is refused."""

from __future__ import annotations

import pytest

from infra.stage.identity import Identity
from infra.stage.settings import Stage, load_stage
from local.outside.issuer import AUDIENCE
from shared.errors import DeclarationError

ISSUER = "https://login.example.com"


@pytest.mark.parametrize(
    ("settings", "repair"),
    [
        ({}, "give the issuer"),
        ({"issuer": "http://login.example.com", "audience": ["a"]}, "give the issuer"),
        ({"issuer": "http://127.0.0.1:8092", "audience": ["a"]}, "off this host an https URL"),
        ({"issuer": "http://127.0.0.1.example.com", "audience": ["a"]}, "give the issuer"),
        ({"issuer": ISSUER}, "name for whom"),
        ({"kind": "iam", "issuer": ISSUER}, "leave them out"),
    ],
)
def test_an_identity_that_would_let_anybody_in_is_refused_with_the_repair(
    settings: dict[str, object], repair: str
) -> None:
    with pytest.raises(DeclarationError, match=repair):
        Stage.model_validate({"name": "dev", "identity": settings})


def test_only_a_stage_of_this_host_trusts_an_issuer_on_it() -> None:
    local = load_stage("local")
    assert local.on_host
    assert local.identity == Identity(issuer="http://127.0.0.1:8092", audience=(AUDIENCE,))
