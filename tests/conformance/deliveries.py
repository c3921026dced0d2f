"""A delivery, as Lambda hands it over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.delivery import read_event
from tests.world import event, record_of

if TYPE_CHECKING:
    from shared.delivery import Delivery


def delivery(text: str = "x", **record: Any) -> Delivery:
    (made,) = read_event(event(record_of(text, **record)))
    return made
