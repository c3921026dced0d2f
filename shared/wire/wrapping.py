"""Takes a message out of what SNS and EventBridge put around it. Recognises their shapes, guesses nothing.

SNS wraps unless raw delivery is on, EventBridge unless a rule's target gives its own input; turning either on or off must not
make messages malformed. What is named a job is taken as it is, whatever stands in its payload.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from shared.delivery import ENCODING_ATTRIBUTE
from shared.errors import Malformed
from shared.strict_json import read_json, written

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_WRAPPINGS = 3


def unwrapped(body: str, encoding: str | None) -> tuple[dict[str, Any], str]:
    """The envelope in a message's body, as a value and as canonical text.

    Args:
        body: text as SQS delivers it.
        encoding: of the body; only what it names is decoded.

    Raises:
        Malformed: unknown-encoding, malformed-encoding, malformed-json, unknown-wrapping.
    """
    text = body
    for _ in range(MOST_WRAPPINGS + 1):
        parsed, canonical = read_json(_decode(text, encoding))
        if not isinstance(parsed, dict):
            raise Malformed("malformed-json", f"an object is expected, not a {type(parsed).__name__}")
        if "job_type" in parsed:
            return parsed, canonical
        if "Type" in parsed and "TopicArn" in parsed:
            text, encoding = _of_sns(parsed)
        elif {"detail-type", "detail", "source"} <= parsed.keys():
            if not isinstance(parsed["detail"], dict):
                raise Malformed("unknown-wrapping", "the event's detail is no object")
            text, encoding = written(parsed["detail"]), None
        else:
            return parsed, canonical  # an envelope that lacks its job type, which whoever reads it says
    raise Malformed("unknown-wrapping", f"the message is wrapped more than {MOST_WRAPPINGS} times")


def _of_sns(notice: Mapping[str, Any]) -> tuple[str, str | None]:
    """The message of a notice, and its encoding. A FIFO topic's has no signature, so none is asked for.

    Raises:
        Malformed: it carries none, as the confirmation of a subscription.
    """
    message = notice.get("Message")
    if notice["Type"] != "Notification" or not isinstance(message, str):
        raise Malformed("unknown-wrapping", "a notice of SNS without a message: confirm the subscription by hand")
    attributes = notice.get("MessageAttributes")
    given = attributes.get(ENCODING_ATTRIBUTE) if isinstance(attributes, dict) else None
    encoding = given.get("Value") if isinstance(given, dict) else None
    return message, encoding if isinstance(encoding, str) else None


def _decode(body: str, encoding: str | None) -> str:
    if encoding in {None, "identity"}:
        return body
    if encoding != "base64":
        raise Malformed("unknown-encoding", f"{ENCODING_ATTRIBUTE} may be identity or base64")
    try:
        return base64.b64decode(body, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise Malformed("malformed-encoding", f"{ENCODING_ATTRIBUTE} says base64, the body is none") from error
