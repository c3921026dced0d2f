"""Fields of a payload that people must not see."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import SecretStr  # noqa: TC002 - pydantic reads it when it runs

from shared.declaring.masked import Masked, masked
from shared.errors import DeclarationError
from shared.job import job
from shared.payload import Payload


class Card(Payload):
    """A card."""

    number: Annotated[str, Masked()]
    brand: str = "x"


class Secret(Payload):
    """What pydantic itself would hide."""

    password: SecretStr


class Order(Payload):
    """An order with cards."""

    order_id: str
    token: Annotated[str, Masked()] | None = None
    card: Card | None = None
    cards: tuple[Card, ...] = ()


def shown(**payload: Any) -> Any:
    return json.loads(masked(json.dumps(payload), Order))


def test_what_is_marked_is_hidden_at_every_depth_and_the_rest_is_shown() -> None:
    card = {"number": "4111", "brand": "visa"}
    assert shown(order_id="o", token="t", card=card, cards=[card, card]) == {
        "order_id": "o",
        "token": "***",
        "card": {"number": "***", "brand": "visa"},
        "cards": [{"number": "***", "brand": "visa"}] * 2,
    }


def test_what_the_schema_does_not_know_is_hidden() -> None:
    assert shown(order_id="o", tokn="secret") == {"order_id": "o", "tokn": "***"}
    assert shown(order_id="o", card={"numbr": "4111"})["card"] == {"numbr": "***"}


def test_without_a_schema_every_value_is_hidden() -> None:
    assert json.loads(masked('{"a": 1}', None)) == {"a": "***"}


@pytest.mark.parametrize("text", ["no json", "[1]", '{"a": 1, "a": 2}'])
def test_what_is_no_payload_is_hidden_whole(text: str) -> None:
    assert masked(text, Order) == "***"


def test_numbers_keep_their_digits() -> None:
    assert masked('{"order_id": 0.10}', Order) == '{"order_id":0.10}'


def test_a_secret_whose_fingerprint_would_be_that_of_asterisks_is_refused() -> None:
    with pytest.raises(DeclarationError, match="Masked"):

        @job("secret", timeout=timedelta(seconds=1), max_latency=timedelta(minutes=1), lock=None)
        def run(payload: Secret, work: Any) -> None: ...


def test_a_value_in_the_place_of_what_has_secrets_is_hidden() -> None:
    assert shown(order_id="1", card="4111", cards=["4111", {"number": "4111", "brand": "y"}]) == {
        "order_id": "1",
        "card": "***",
        "cards": ["***", {"number": "***", "brand": "y"}],
    }
    assert shown(order_id="1", card=None) == {"order_id": "1", "card": None}
