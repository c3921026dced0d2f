"""Reading and writing the envelope."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Malformed, NewerVersion, Refused
from shared.job import JobTypes
from shared.limits import check_message
from shared.message import FORMAT, Message, check_key
from shared.outcome import Because, Postponed
from shared.payload import Payload
from shared.strict_json import json_text
from shared.wire.deposits import LARGEST_BYTES
from shared.wire.parsing import fingerprint, read_message, typed_payload
from tests.unit.json_values import Json
from tests.world import World, body, note_job


class Amount(Payload):
    """A payload with an exact number and a count."""

    amount: Decimal = Decimal(0)
    count: int = 0
    text: str = ""


class Earlier(Payload):
    """The same before `amount` and `text` were added."""

    count: int = 0


def amount_types() -> JobTypes:
    def handler(payload: Amount, work: Any) -> None:
        """Do nothing."""

    from shared.job import job  # noqa: PLC0415
    from tests.unit.times import TIMES  # noqa: PLC0415

    return JobTypes.of(job("note", **TIMES)(handler))


def reason(text: str, encoding: str | None = None) -> str:
    with pytest.raises(Malformed) as caught:
        read_message(text, encoding)
    return caught.value.reason


def payload_of(payload: str) -> Amount:
    message = read_message(f'{{"job_type":"note","idempotency_key":"k","payload":{payload}}}')
    _, typed = typed_payload(message, amount_types())
    assert isinstance(typed, Amount)
    return typed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "7",
        "hello",
        "\ufeff" + body(),
        body() + "\x00",
        "[" * 2000 + "]" * 2000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        body(payload={"n": 0}).replace("0", "1" * 5000),
        body(payload={"n": 0}).replace(": 0", ": NaN"),
        body(payload={"n": 0}).replace(": 0", ": -Infinity"),
        body(payload={"n": 0}).replace(": 0", ": -0.0"),
        body(payload={"n": 0}).replace(": 0", ": " + "1" * 39),
        body(payload={"n": 0}).replace(": 0", ": 1e126"),
        body(payload={"n": 0}).replace(": 0", ": 1e-131"),
        body(payload={"n": 0}).replace(": 0", ": 1e9999999"),
        body(payload={"n": 0}).replace(": 0", ": 1e99999999999999999999"),
        body(payload={"n": 0}).replace(": 0", ": 0e99999999999999999999"),
        body(payload={"n": 0}).replace(": 0", f": 0.{'0' * 100_000}1"),
        "1e9999999",
        body(payload={"text": "\ud83d"}),
        '{"job_type":"note","job_type":"other","idempotency_key":"k","payload":{}}',
    ],
    ids=lambda text: repr(text[:20]),
)
def test_pay_11_what_is_not_the_expected_json_is_malformed(text: str) -> None:
    assert reason(text) == "malformed-json"


@pytest.mark.parametrize(
    "change",
    [
        {"job_type": ...},
        {"job_type": ""},
        {"job_type": 5},
        {"payload": ...},
        {"payload": []},
        {"version": 0},
        {"version": "1"},
        {"unknown": 1},
        {"enqueued_at": "2026-01-01T00:00:00"},
        {"job_id": ""},
        {"format": 0},
        {"format": "2"},
        {"format": True},
    ],
    ids=str,
)
def test_an_envelope_of_the_wrong_shape_is_refused(change: dict[str, Any]) -> None:
    assert reason(body(**change)) == "invalid-envelope"


@pytest.mark.parametrize("key", ["k\n", "é", "k" * 256, " k", "k ", "a\x00b"])
def test_a_key_that_no_header_could_carry_is_refused(key: str) -> None:
    with pytest.raises(Malformed, match="invalid-idempotency-key"):
        check_key(key)


@pytest.mark.parametrize("text", ["cGFy", "abcd", "1234"])
def test_pay_07_nothing_is_decoded_without_its_marker(text: str) -> None:
    assert reason(text) == "malformed-json"
    inner = base64.b64encode(b"text").decode()
    assert json.loads(read_message(body(payload={"text": inner})).payload)["text"] == inner


def test_pay_07_a_marked_body_is_decoded_and_a_wrong_or_broken_marker_is_refused() -> None:
    encoded = base64.b64encode(body().encode()).decode()
    assert read_message(encoded, "base64") == read_message(body(), "identity")
    assert reason(encoded[:-1], "base64") == "malformed-encoding"
    assert reason(encoded, "gzip") == "unknown-encoding"


@pytest.mark.parametrize("digits", ["30.40", "0.1", "1e-130", "12345678901234567890123456789012345678", "3.1400"])
def test_pay_09_digits_come_through_exactly(digits: str) -> None:
    message = read_message(body(payload={"amount": 1}).replace(" 1", f" {digits}"))
    assert digits in message.payload
    assert digits in message.body()
    assert payload_of(f'{{"amount":{digits}}}').amount == Decimal(digits)


def test_pay_09_an_amount_sent_as_text_keeps_even_its_trailing_zeros() -> None:
    assert str(payload_of('{"amount":"30.00"}').amount) == "30.00"
    assert str(payload_of('{"amount":30.40}').amount) == "30.40"


@pytest.mark.parametrize(("one", "other"), [("10", "10.0"), ("10", "1e1"), ("0", "0.0")])
def test_ide_11_a_number_is_its_value(one: str, other: str) -> None:
    first, second = payload_of(f'{{"count":{one}}}'), payload_of(f'{{"count":{other}}}')
    message = Message("note", 1, "k", "{}")
    assert fingerprint(message, first) == fingerprint(message, second)


def test_ide_11_unicode_is_compared_code_point_by_code_point() -> None:
    message = Message("note", 1, "k", "{}")
    composed, decomposed = payload_of('{"text":"\u00e9"}'), payload_of('{"text":"e\u0301"}')
    assert fingerprint(message, composed) != fingerprint(message, decomposed)


@pytest.mark.parametrize(
    "payload", ['{"count":10.5}', '{"count":"10"}', '{"text":30.4}', '{"extra":1}', '{"count":true}']
)
def test_payloads_are_strict(payload: str) -> None:
    with pytest.raises(Malformed, match="invalid-payload"):
        payload_of(payload)


def test_errors_name_fields_and_never_values() -> None:
    with pytest.raises(Malformed) as caught:
        payload_of('{"count":"canary"}')
    assert "count" in caught.value.detail
    assert "canary" not in caught.value.detail


def test_a_payload_that_its_job_record_could_not_keep_is_refused_with_its_size() -> None:
    assert reason(body(payload={"text": "\u4e2d" * 90_000})) == "payload-too-large"
    read_message(body(payload={"text": "x" * 250_000}))


def test_a_short_number_never_becomes_a_long_one() -> None:
    message = read_message(body(payload={"n": 0}).replace(": 0", ": 1e125"))
    assert message.payload == '{"n":1e125}'


def test_a_field_added_with_a_default_leaves_fingerprints_as_they_were() -> None:
    message = Message("note", 1, "k", "{}")
    assert fingerprint(message, Earlier(count=3)) == fingerprint(message, Amount(count=3))
    assert fingerprint(message, Amount(count=3)) != fingerprint(message, Amount(count=3, text="x"))


def test_what_the_consumer_would_refuse_is_refused_when_the_message_is_made() -> None:
    job = amount_types().by_name["note"]
    with pytest.raises(Malformed, match="malformed-json"):
        job.message(Amount(count=10**39 + 1), key="k")
    with pytest.raises(Malformed, match="payload-too-large"):
        job.message(Amount(text="x" * LARGEST_BYTES), key="k")
    with pytest.raises(Malformed, match="malformed-json"):
        job.message(Amount(text="x" * 300_000, count=10**39 + 1), key="k")


@given(st.text(alphabet="0123456789eE+-.", min_size=1, max_size=40))
def test_no_number_breaks_the_reader(digits: str) -> None:
    try:
        read_message(f'{{"job_type":"note","idempotency_key":"k","payload":{{"n":{digits}}}}}')
    except Malformed:
        return


def test_i46_a_message_in_a_later_format_waits_for_the_deploy_that_knows_it() -> None:
    with pytest.raises(NewerVersion):
        read_message(body(format=FORMAT + 1, unknown=1, idempotency_key=...))
    assert read_message(body(format=FORMAT)) == read_message(body())
    outcome, acknowledged = World.of().run(body(format=FORMAT + 1, run_at_most=1))
    assert isinstance(outcome, Postponed)
    assert (outcome.because, acknowledged) == (Because.NEWER_VERSION, False)


def test_versions_newer_wait_and_older_are_refused() -> None:
    types = JobTypes.of(note_job(version=2))
    with pytest.raises(NewerVersion):
        typed_payload(read_message(body(version=3)), types)
    with pytest.raises(Malformed, match="schema-unsupported"):
        typed_payload(read_message(body(version=1)), types)


@pytest.mark.parametrize(
    "text", ["a\x00b", "\x07", "\x0b", "\ufffe", "\uffff", "tab\tlf\ncr\r", "\U0001f600 中", "\x7f\x85"]
)
def test_pay_01_any_text_is_written_so_that_sqs_takes_it_and_reads_back_equal(text: str) -> None:
    message = Message("note", 1, "k", json_text({"text": text}))
    written = message.body()
    check_message(written, {})
    assert json.loads(read_message(written).payload)["text"] == text


def test_pay_01_half_a_surrogate_pair_is_refused_when_a_message_is_made() -> None:
    job = note_job()
    with pytest.raises(Refused, match="surrogate"):
        job.message(job.payload(thing="a", text="\ud83d"), key="k")


@given(st.text(max_size=50))
def test_reading_never_raises_anything_but_malformed(text: str) -> None:
    try:
        read_message(text)
    except Malformed:
        return


@given(st.dictionaries(st.text(max_size=5), Json, max_size=4))
def test_every_payload_survives_writing_and_reading(payload: dict[str, Any]) -> None:
    try:
        text = json_text(payload)
        text.encode()
    except UnicodeEncodeError:
        return
    message = Message("note", 1, "key", text)
    assert json.loads(read_message(message.body()).payload) == payload


@pytest.mark.parametrize("name", ["run_at", "enqueued_at"])
def test_i4_a_moment_in_a_zone_that_is_seconds_apart_is_written_as_every_reader_takes_it(name: str) -> None:
    moment = datetime(2026, 12, 24, 18, tzinfo=timezone(timedelta(hours=1, seconds=30)))
    message = Message("a-job", 1, "k", "{}", **{name: moment})  # type: ignore[arg-type]
    assert getattr(read_message(message.body()), name) == moment
