"""Why a message died: the reason written beside it, and what is read from a dead letter that may have none.

The body and the attributes of the message stay as they were; the reason is one more attribute, JSON, within the bytes
that producers keep free.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from shared.delivery import DEAD_LETTER_ATTRIBUTE
from shared.limits import DEAD_LETTER_BYTES
from shared.strict_json import json_text

if TYPE_CHECKING:
    from shared.delivery import Delivery
    from shared.job_record import JobView
    from shared.outcome import DeadLettered

ORIGINAL_ATTRIBUTES = "attributes"  # within the dossier, where a dead letter has no free slot
ALWAYS = ("reason", "signature", "attempts", "death", ORIGINAL_ATTRIBUTES)  # what is kept when the rest does not fit


class Death(StrEnum):
    """How a message came into its dead-letter queue."""

    FAILED = "failed"  # the consumer sent it, with its reason
    NEVER_ATTEMPTED = (
        "never-attempted"  # SQS moved it, and no attempt was ever made: throttled, or killed before the claim
    )
    SILENT = "silent"  # SQS moved it after attempts that ended without a word, or while it waited
    ENDED = "ended"  # SQS moved it, but its job ended well: a duplicate that was received too often


def dossier(delivery: Delivery, outcome: DeadLettered) -> str:
    """The reason, as the JSON text of its attribute."""
    failure = outcome.failure
    facts: dict[str, object] = {
        "reason": failure.reason,
        "error": failure.error,
        "signature": failure.signature,
        "attempts": outcome.attempts,
        "first_failure": (outcome.first_failure or failure).at.isoformat(),
        "last_failure": failure.at.isoformat(),
        "dependency": failure.dependency,
        "xray": delivery.trace,
        "death": outcome.death,
        **outcome.names,
    }
    text = json_text({name: value for name, value in facts.items() if value is not None})
    if len(text.encode()) > DEAD_LETTER_BYTES - len(f"{DEAD_LETTER_ATTRIBUTE}String"):
        return least(text)
    return text


def reopening(death: int) -> dict[str, str]:
    """The attributes by which a message is run although its job died before: it is no older copy."""
    return {DEAD_LETTER_ATTRIBUTE: json_text({"death": death})}


def facts_of(letter: Delivery) -> dict[str, Any]:
    """What stands in the attribute of a dead letter; nothing where there is none, or none that can be read."""
    try:
        facts = json.loads(letter.text_attribute(DEAD_LETTER_ATTRIBUTE) or "{}")
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def folded_in(letter: Delivery) -> dict[str, Any]:
    """The message's own attributes that its dead letter had no slot for."""
    folded = facts_of(letter).get(ORIGINAL_ATTRIBUTES)
    if not isinstance(folded, dict):
        return {}
    return {name: value for name, value in folded.items() if isinstance(value, dict)}  # whoever wrote it


def least(reason: str) -> str:
    """The shortest reason that still tells why and how often."""
    facts = json.loads(reason)
    return json.dumps({name: facts[name] for name in ALWAYS if name in facts}, separators=(",", ":"))


def how_it_died(letter: Delivery, record: JobView | None) -> Death:
    """Tell a job that failed from one that was never tried.

    Args:
        letter: as received from the dead-letter queue.
        record: the job's record; None if there is none.
    """
    if "reason" in facts_of(letter):  # without it the attribute only marks a copy that was sent anew
        return Death.FAILED
    if record is None or (record.attempts == 0 and not record.ended):
        return Death.NEVER_ATTEMPTED
    return Death.ENDED if record.ended else Death.SILENT
