"""PAY-05: raw, wrapped and doubly wrapped messages are one job; what is in a payload is never unwrapped."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from shared.errors import Malformed
from shared.outcome import Completed, DeadLettered, Duplicate
from shared.wire.parsing import read_message
from shared.wire.wrapping import MOST_WRAPPINGS
from tests.world import World, body, event, record_of


def sns(message: str, **more: Any) -> str:
    notice = {
        "Type": "Notification",
        "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "TopicArn": "arn:aws:sns:eu-central-1:000000000000:orders",
        "Message": message,
        "Timestamp": "2026-01-01T00:00:00.000Z",
        "SignatureVersion": "1",
        "Signature": "EXAMPLE",
        "UnsubscribeURL": "https://sns.eu-central-1.amazonaws.com/?Action=Unsubscribe",
        **more,
    }
    return json.dumps({name: value for name, value in notice.items() if value is not None})


def bridge(detail: Any) -> str:
    return json.dumps(
        {
            "version": "0",
            "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
            "detail-type": "OrderPlaced",
            "source": "shop",
            "account": "000000000000",
            "time": "2026-01-01T00:00:00Z",
            "region": "eu-central-1",
            "resources": [],
            "detail": detail,
        }
    )


PLAIN = body()
WRAPPINGS = {
    "plain": PLAIN,
    "SNS": sns(PLAIN),
    "EventBridge": bridge(json.loads(PLAIN)),
    "EventBridge through SNS": sns(bridge(json.loads(PLAIN))),
    "SNS in EventBridge": bridge(json.loads(sns(PLAIN))),
    "a FIFO topic, without a signature": sns(PLAIN, Signature=None, SignatureVersion=None, UnsubscribeURL=None),
}


@pytest.mark.parametrize("text", WRAPPINGS.values(), ids=WRAPPINGS)
def test_pay_05_the_message_is_the_same_in_every_wrapping(text: str) -> None:
    assert read_message(text) == read_message(PLAIN)


def test_pay_05_one_order_in_all_wrappings_in_one_batch_is_one_effect() -> None:
    world = World.of()
    records = [record_of(text, f"m{place}") for place, text in enumerate(WRAPPINGS.values())]
    for record in records:
        world.handle(event(record))
    assert [job["result"] for job in world.telemetry.jobs] == ["succeeded"] + ["duplicates"] * 5
    assert len({job["operation_id"] for job in world.telemetry.jobs}) == 1
    thing = world.thing("a")
    assert thing is not None
    assert thing["times"] == 1


def test_a_payload_that_looks_like_a_wrapping_stays_as_it_is() -> None:
    looks = {"Type": "Notification", "TopicArn": "x", "Message": "{}", "detail": {"job_type": "other"}}
    message = read_message(sns(body(payload=looks)))
    assert json.loads(message.payload) == looks
    assert message.job_type == "note"


def test_the_digits_of_numbers_survive_the_wrappings() -> None:
    digits = '{"job_type":"note","idempotency_key":"k","payload":{"n":0.10000000000000000001}}'
    wrapped = bridge("DETAIL").replace('"DETAIL"', digits)
    for text in (digits, sns(digits), wrapped, sns(wrapped)):
        assert read_message(text).payload == '{"n":0.10000000000000000001}'


def test_the_encoding_is_that_of_its_own_level() -> None:
    encoded = base64.b64encode(PLAIN.encode()).decode()
    named = {"content-encoding": {"Type": "String", "Value": "base64"}}
    assert read_message(sns(encoded, MessageAttributes=named)) == read_message(PLAIN)
    outer = base64.b64encode(sns(PLAIN).encode()).decode()
    assert read_message(outer, "base64") == read_message(PLAIN)
    event_of_a_rule = base64.b64encode(bridge(json.loads(PLAIN)).encode()).decode()
    assert read_message(event_of_a_rule, "base64") == read_message(PLAIN)
    with pytest.raises(Malformed, match="malformed-json"):
        read_message(sns(encoded))  # nothing is guessed
    for odd in ("base64", {"content-encoding": "base64"}, {"content-encoding": {"Value": 7}}):
        assert read_message(sns(PLAIN, MessageAttributes=odd)) == read_message(PLAIN)


def nested(times: int) -> str:
    text = PLAIN
    for _ in range(times):
        text = sns(text)
    return text


def test_three_wrappings_are_taken_off_and_no_more() -> None:
    assert read_message(nested(MOST_WRAPPINGS)) == read_message(PLAIN)
    with pytest.raises(Malformed, match="unknown-wrapping"):
        read_message(nested(MOST_WRAPPINGS + 1))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (sns("x", Type="SubscriptionConfirmation"), "unknown-wrapping"),
        (sns(PLAIN, Message=None), "unknown-wrapping"),
        (sns(PLAIN, Message=7), "unknown-wrapping"),
        (bridge("text"), "unknown-wrapping"),
        (sns("[]"), "malformed-json"),
        (sns("no JSON"), "malformed-json"),
        (sns('{"idempotency_key":"k","payload":{}}'), "invalid-envelope"),
        (json.dumps({"Records": [{"s3": {}}]}), "missing-idempotency-key"),
    ],
)
def test_pay_05_what_cannot_be_unwrapped_is_dead_lettered_with_its_reason(text: str, reason: str) -> None:
    outcome, _ = World.of().run(text)
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == reason


def test_a_wrapped_message_is_run_like_any_other() -> None:
    world = World.of()
    assert world.run(sns(PLAIN))[0] == Completed(1)
    assert world.run(PLAIN)[0] == Duplicate("completed")


def test_only_what_looks_like_an_event_all_over_is_one() -> None:
    with pytest.raises(Malformed, match="invalid-envelope"):
        read_message(json.dumps({"idempotency_key": "k", "detail": json.loads(PLAIN)}))
