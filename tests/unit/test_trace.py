"""R3.5: one trace from the first request to the last log line, whatever stands between; a wrong header costs no job."""

from __future__ import annotations

import hashlib
import json
from random import Random
from typing import Any

import pytest

from shared.dependency import Dependency, Reply
from shared.errors import DeadLetter, OutcomeUnknown
from shared.message import Message
from shared.outcome import Completed, DeadLettered, Unknown
from shared.producer import Producer
from shared.trace import Trace, begun, read_trace, read_xray
from shared.wire.parsing import read_message
from tests.world import Counter, FakeClock, Note, NotingQueue, World, body, note_job

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
HEADER = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    "header",
    [
        None,
        7,
        "",
        HEADER.upper(),
        HEADER[:-1],
        f"{HEADER} ",
        f"{HEADER}-more",
        f"ff{HEADER[2:]}",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE}-{'0' * 16}-01",
        "\r\n",
    ],
)
def test_what_is_no_traceparent_is_none(header: object) -> None:
    assert read_trace(header) is None


def test_a_traceparent_is_read_also_of_a_later_version_and_written_as_the_first() -> None:
    trace = read_trace(HEADER)
    assert trace == Trace(TRACE, "00f067aa0ba902b7", "01")
    assert trace.header == HEADER
    assert read_trace(f"cc{HEADER[2:]}-what-the-future-will-be-like") == trace


def test_x_rays_name_of_a_trace_is_the_same_trace() -> None:
    root = f"1-{TRACE[:8]}-{TRACE[8:]}"
    assert read_xray(f"Root={root};Parent=53995c3f42cd8ad8;Sampled=1") == Trace(TRACE, "53995c3f42cd8ad8")
    assert read_xray(f"Self=1-67891234-12456789abcdef012345678;Root={root}") == Trace(TRACE, TRACE[:16])
    assert [read_xray(text) for text in (None, "", "Root=", f"Root={root}0")] == [None] * 4


def test_a_child_is_sampled_as_its_parent_is() -> None:
    assert Trace("a" * 32, "b" * 16, "00").child(Counter()).flags == "00"


def test_a_child_stays_in_its_trace() -> None:
    tokens = Counter()
    trace = begun(tokens)
    child = trace.child(tokens)
    assert (child.trace_id, child.flags) == (trace.trace_id, trace.flags)
    assert child.span_id != trace.span_id
    assert read_trace(child.header) == child


def test_a_message_carries_its_trace_and_a_wrong_one_costs_nothing() -> None:
    message = read_message(body(traceparent=HEADER))
    assert message.trace is not None
    assert message.trace.header == HEADER
    assert json.loads(message.body())["traceparent"] == HEADER
    for wrong in ("rubbish", 7, {"a": 1}):
        assert read_message(body(traceparent=wrong)).trace is None
        assert World.of().execute(body(traceparent=wrong)) == Completed(1)


def test_a_producer_begins_a_trace_or_goes_on_with_the_one_it_is_given() -> None:
    queue = NotingQueue()
    producer = Producer(queue, FakeClock(), Random(1), Counter())  # noqa: S311 - repeatable
    producer.enqueue(Message("note", 1, "k", "{}"))
    producer.enqueue(Message("note", 1, "k", "{}", trace=read_trace(HEADER)))
    first, second = (json.loads(sent.body)["traceparent"] for sent in queue.sent)
    assert read_trace(first) is not None
    assert second == HEADER


SHOP = Dependency("shop", timeout=note_job().timeout / 2)


def test_the_trace_goes_on_in_log_lines_messages_and_calls() -> None:
    def handler(_: Note, work: Any) -> None:
        work.enqueue(note_job().message(Note(thing="b"), "next"))
        work.enqueue(Message("note", 1, "own", "{}", trace=Trace("a" * 32, "b" * 16)))
        work.call(SHOP, "GET", "/")

    world = World.of(handler, uses=(SHOP,))
    heard: list[Any] = []

    def answer(_method: str, _path: str, _body: object, headers: object) -> Reply:
        heard.append(headers)
        return Reply(200, {})

    world.transport.answer = answer
    assert world.execute(body(traceparent=HEADER)) == Completed(1)
    (line,) = world.telemetry.jobs
    assert line["trace_id"] == TRACE
    assert line["resources"] == (hashlib.sha256(b"thing/a").hexdigest()[:16],)
    followed, own = (read_message(posting.body).trace for posting in world.database.outbox.values())
    assert followed is not None
    assert followed.trace_id == TRACE
    assert followed.header != HEADER
    assert own == Trace("a" * 32, "b" * 16)
    assert read_trace(heard[0]["traceparent"]).trace_id == TRACE  # type: ignore[union-attr]


def test_a_call_names_one_trace_also_where_the_handler_gives_its_own() -> None:
    def handler(_: Note, work: Any) -> None:
        work.call(SHOP, "GET", "/", headers={"Traceparent": "mine"})

    world = World.of(handler, uses=(SHOP,))
    heard: list[Any] = []

    def answer(_method: str, _path: str, _body: object, headers: object) -> Reply:
        heard.append(headers)
        return Reply(200, {})

    world.transport.answer = answer
    assert world.execute(body(traceparent=HEADER)) == Completed(1)
    assert heard == [{"Traceparent": "mine"}]


def test_the_trace_goes_on_where_a_job_has_to_be_reconciled_and_where_it_dies() -> None:
    def handler(payload: Note, _: Any) -> None:
        if payload.text == "unknown":
            message = "who knows"
            raise OutcomeUnknown(message, reconcile=Message("note", 1, "r", '{"thing":"a"}'))
        reason = "hopeless"
        raise DeadLetter(reason)

    world = World.of(handler)
    unknown = body(traceparent=HEADER, payload={"thing": "a", "text": "unknown"})
    assert isinstance(world.execute(unknown), Unknown)
    (posting,) = world.database.outbox.values()
    assert read_message(posting.body).trace.trace_id == TRACE  # type: ignore[union-attr]
    outcome, _ = world.run(body(traceparent=HEADER, idempotency_key="k2", payload={"thing": "a", "text": "dies"}))
    assert isinstance(outcome, DeadLettered)
    (letter,) = world.queue.dead
    assert json.loads(letter[1])["trace_id"] == TRACE


def test_a_message_without_a_trace_has_the_one_that_x_ray_carried_beside_it() -> None:
    world = World.of()
    header = f"Root=1-{TRACE[:8]}-{TRACE[8:]};Sampled=1"
    world.execute(body(), system={"AWSTraceHeader": header})
    assert world.telemetry.jobs[0]["trace_id"] == TRACE
    world.execute(body(idempotency_key="none"))
    assert "trace_id" not in world.telemetry.jobs[1]
