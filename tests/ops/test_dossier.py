"""What is read from a dead letter by itself."""

from __future__ import annotations

import json

import pytest

from ops.letters.dossier import read
from shared.delivery import DEAD_LETTER_ATTRIBUTE, read_event
from shared.job_record import SYSTEM, record_id
from tests.world import body, event, record_of


@pytest.mark.parametrize(
    ("reason", "record"),
    [
        ("idempotency-key-reused", None),
        ("not-accepted", None),
        ("unknown-order", record_id(SYSTEM, "note", "k1")),
    ],
)
def test_a_letter_whose_consumer_found_no_record_of_its_own_has_none(reason: str, record: str | None) -> None:
    told = {"stringValue": json.dumps({"reason": reason, "death": 1}), "dataType": "String"}
    (delivery,) = read_event(event(record_of(body(), attributes={DEAD_LETTER_ATTRIBUTE: told})))
    assert read("notes", delivery).record == record
