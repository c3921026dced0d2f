"""Message attributes in their two forms: as the SQS API has them and as Lambda hands them over; and those of a dead letter."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from shared.dead_letter import ORIGINAL_ATTRIBUTES, folded_in, least
from shared.delivery import DEAD_LETTER_ATTRIBUTE, ENCODING_ATTRIBUTE
from shared.errors import Refused
from shared.limits import MESSAGE_ATTRIBUTES, MESSAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.delivery import Delivery

Attributes = dict[str, dict[str, Any]]


def of_strings(attributes: Mapping[str, str]) -> Attributes:
    """String attributes as the API has them."""
    return {name: _text(value) for name, value in attributes.items()}


def to_api(attributes: Mapping[str, Mapping[str, Any]]) -> Attributes:
    """Attributes of a Lambda event as the API has them."""
    return {name: _to_api(value) for name, value in attributes.items()}


def to_event(attributes: Mapping[str, Mapping[str, Any]]) -> Attributes:
    """Attributes of the API as a Lambda event has them."""
    return {name: _to_event(value) for name, value in attributes.items()}


def dead_letter_attributes(delivery: Delivery, reason: str) -> Attributes:
    """The attributes of a dead letter, as the API has them: the message's own and its reason.

    Raises:
        Refused: the reason does not fit in any form.
    """
    attributes = to_api(delivery.attributes)
    attributes.pop(DEAD_LETTER_ATTRIBUTE, None)
    if folded_before := folded_in(delivery):
        # It was replayed with its originals within the mark of its death: there they stay.
        reason = json.dumps({**json.loads(reason), ORIGINAL_ATTRIBUTES: folded_before})
    if len(attributes) >= MESSAGE_ATTRIBUTES:
        # No slot is free: the originals travel inside the reason, but for the one without which nobody could read it.
        folded = {name: value for name, value in delivery.attributes.items() if name != ENCODING_ATTRIBUTE}
        reason = json.dumps({**json.loads(reason), ORIGINAL_ATTRIBUTES: folded})
        attributes = {name: value for name, value in attributes.items() if name == ENCODING_ATTRIBUTE}
    if _total(delivery.body, attributes) + _size(DEAD_LETTER_ATTRIBUTE, _text(reason)) > MESSAGE_BYTES:
        reason = least(reason)
    attributes[DEAD_LETTER_ATTRIBUTE] = _text(reason)
    size = _total(delivery.body, attributes)
    if size > MESSAGE_BYTES:
        message = f"The dead letter has {size} bytes, SQS takes {MESSAGE_BYTES}: SQS's own redrive moves it, without a reason."
        raise Refused(message)
    return attributes


def _to_api(value: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(value.get("dataType", "String"))
    if value.get("binaryValue") is not None:
        return {"DataType": kind, "BinaryValue": base64.b64decode(value["binaryValue"])}
    return {"DataType": kind, "StringValue": str(value.get("stringValue", ""))}


def _to_event(value: Mapping[str, Any]) -> dict[str, Any]:
    attribute = {"dataType": value["DataType"], "stringListValues": [], "binaryListValues": []}
    if "BinaryValue" in value:
        return {**attribute, "binaryValue": base64.b64encode(value["BinaryValue"]).decode()}
    return {**attribute, "stringValue": value["StringValue"]}


def _text(value: str) -> dict[str, Any]:
    return {"DataType": "String", "StringValue": value}


def _total(body: str, attributes: Mapping[str, Mapping[str, Any]]) -> int:
    return len(body.encode()) + sum(_size(name, value) for name, value in attributes.items())


def _size(name: str, attribute: Mapping[str, Any]) -> int:
    content = attribute.get("BinaryValue") or str(attribute.get("StringValue", "")).encode()
    return len(name.encode()) + len(str(attribute["DataType"]).encode()) + len(content)
