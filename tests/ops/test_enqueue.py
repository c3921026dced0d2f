"""`tahan enqueue`: what it sends the consumer takes, and what the consumer would refuse it refuses, before anything is sent."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions.registry import WORKERS
from ops.exits import CommandError, Exit
from ops.stack.deployed import Deployed
from shared.errors import Refused, Unavailable
from shared.job_record import SYSTEM, operation_id, record_id
from shared.naming import camel
from shared.producer import NotTaken
from shared.wire.parsing import read_message
from tests.ops.desk import Desk
from tests.world import START

if TYPE_CHECKING:
    from pathlib import Path

PAYLOAD = {"order_id": "order-17", "payment_intent_id": "pi_ok_17"}
TEXT = json.dumps(PAYLOAD)
CAPTURE = ("enqueue", "capture-payment", "--key", "order-17/capture")


def test_a_job_goes_to_its_workers_queue_and_is_found_under_the_names_that_are_told() -> None:
    desk = Desk()

    assert desk.run(*CAPTURE, "--payload", TEXT, "--json") == Exit.DONE

    ((url, outgoing),) = desk.sent
    assert url == "https://sqs/payments"
    message = read_message(outgoing.body)
    assert (message.job_type, message.idempotency_key) == ("capture-payment", "order-17/capture")
    assert json.loads(message.payload) == PAYLOAD
    record = record_id(SYSTEM, "capture-payment", "order-17/capture")
    assert (desk.json["message_id"], desk.json["sent"]) == ("message-1", True)
    assert (desk.json["record"], desk.json["operation_id"]) == (record, operation_id(record))
    assert message.trace is not None
    assert desk.json["trace_id"] == message.trace.trace_id


def test_people_get_a_line_for_each_and_never_the_payload_or_the_key() -> None:
    desk = Desk()
    assert desk.run(*CAPTURE, "--payload", TEXT) == Exit.DONE
    assert "message id    message-1" in desk.out
    assert "order-17" not in desk.out + desk.err
    assert "pi_ok_17" not in desk.out + desk.err


@pytest.mark.parametrize("source", ["argument", "file", "stdin"])
def test_a_payload_comes_from_an_argument_a_file_or_standard_input(source: str, tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_text(TEXT, encoding="utf-8")
    words = {"argument": ("--payload", TEXT), "file": ("--payload-file", str(file)), "stdin": ("-",)}
    desk = Desk(stdin=TEXT)
    assert desk.run(*CAPTURE, *words[source]) == Exit.DONE
    assert json.loads(read_message(desk.sent[0][1].body).payload) == PAYLOAD


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--payload", '{"order_id": 7}'),
            ["order_id: string_type", "payment_intent_id: missing", "Its fields: order_id"],
        ),
        (("--payload", '{"order_id": "o", "payment_intent_id": "p", "secret-field": 1}'), ["secret-field: extra"]),
        (("--payload", "[]"), ["an object is expected"]),
        (("--payload", '{"a": 1, "a": 2}'), ["malformed-json"]),
        (("--payload", '{"order_id"'), ["malformed-json"]),
        ((), ["order_id: missing"]),
        (("--payload", json.dumps({**PAYLOAD, "order_id": "x" * 300_000})), ["payload-too-large"]),
        (("--payload", TEXT, "--run-at", "tomorrow"), ["give a time like"]),
        (("--payload", TEXT, "--run-at", "2026-02-01T10:00:00"), ["in which zone", "2026-02-01T10:00:00Z"]),
        (("--payload", TEXT, "--run-at", "2028-01-01T00:00:00Z"), ["366 days at most"]),
        (("--payload", TEXT, "--delay", "901"), ["up to 900 seconds", "--run-at"]),
        (("--payload", TEXT, "--delay", "-1"), ["up to 900 seconds"]),
        (("--payload", TEXT, "--group", "two words"), ["group"]),
        (("--payload-file", "/nowhere/at/all"), ["cannot be read"]),
    ],
    ids=str,
)
def test_what_the_consumer_would_refuse_is_refused_with_the_repair_and_nothing_is_sent(
    words: tuple[str, ...], says: list[str]
) -> None:
    desk = Desk()
    assert desk.run(*CAPTURE, *words) == Exit.REFUSED
    assert [text for text in says if text not in desk.err] == []
    assert (desk.out, desk.sent) == ("", [])


@pytest.mark.parametrize("key", ["", "  ", "k" * 256, "é", " blank"])
def test_ide_04_a_key_that_names_no_intent_is_refused(key: str) -> None:
    desk = Desk()
    assert desk.run("enqueue", "capture-payment", "--key", key, "--payload", TEXT) == Exit.REFUSED
    assert "idempotency-key" in desk.err
    assert desk.sent == []


def test_values_of_a_refused_payload_are_not_repeated() -> None:
    desk = Desk()
    desk.run(*CAPTURE, "--payload", '{"order_id": 4111111111111111}')
    assert "4111" not in desk.out + desk.err


def test_an_unknown_job_type_lists_those_that_are_and_the_one_that_was_meant() -> None:
    desk = Desk()
    assert desk.run("enqueue", "capture-paymnt", "--key", "k") == Exit.REFUSED
    assert "Did you mean capture-payment?" in desk.err
    assert [
        job.name for worker in WORKERS for job in worker.jobs if f"{job.name} (worker {worker.name})" not in desk.err
    ] == []


def test_r1_1_a_job_for_later_waits_on_the_queue_as_long_as_it_may_and_says_what_comes_then() -> None:
    desk = Desk()
    soon, later = START + timedelta(minutes=5), START + timedelta(days=2)

    assert desk.run(*CAPTURE, "--payload", TEXT, "--run-at", soon.isoformat()) == Exit.DONE
    assert desk.err == ""
    assert desk.run(*CAPTURE, "--payload", TEXT, "--run-at", later.isoformat()) == Exit.DONE
    assert "the outbox keeps it until its time" in desk.err

    delays = [(outgoing.delay, read_message(outgoing.body).run_at) for _, outgoing in desk.sent]
    assert delays == [(timedelta(minutes=5), soon), (timedelta(minutes=15), later)]


def test_a_time_that_has_passed_is_told() -> None:
    desk = Desk()
    assert desk.run(*CAPTURE, "--payload", TEXT, "--run-at", (START - timedelta(hours=1)).isoformat()) == Exit.DONE
    assert "it runs at once" in desk.err


def test_delay_and_group_are_sqss_own() -> None:
    desk = Desk()
    assert desk.run(*CAPTURE, "--payload", TEXT, "--delay", "30", "--group", "tenant-1") == Exit.DONE
    (_, outgoing) = desk.sent[0]
    assert (outgoing.delay, outgoing.group) == (timedelta(seconds=30), "tenant-1")


def test_a_dry_run_asks_aws_nothing() -> None:
    desk = Desk()
    assert desk.run(*CAPTURE, "--payload", TEXT, "--dry-run", "--json", "--stack", "nowhere") == Exit.DONE
    assert (desk.json["sent"], "message_id" in desk.json, desk.sent) == (False, False, [])
    assert desk.run(*CAPTURE, "--payload", "{}", "--dry-run") == Exit.REFUSED


@pytest.mark.parametrize(
    ("refuses", "status", "says"),
    [
        (NotTaken("InternalError", final=False), Exit.NOT_DONE, "send it again with the same key"),
        (Unavailable("sqs cannot do it now (AccessDenied).", dependency="sqs"), Exit.NOT_DONE, "docs/reference/cli.md"),
        (Unavailable("sqs cannot do it now (ExpiredToken).", dependency="sqs"), Exit.NOT_DONE, "no longer good"),
        (Refused("sqs refuses it (InvalidParameterValue)."), Exit.NOT_DONE, "InvalidParameterValue"),
    ],
    ids=str,
)
def test_what_was_not_sent_is_said_and_never_counted_as_sent(refuses: Any, status: Exit, says: str) -> None:
    desk = Desk(refuses=refuses)
    assert desk.run(*CAPTURE, "--payload", TEXT) == status
    assert says in desk.err
    assert desk.out == ""


def test_words_about_the_stack_stand_before_the_command_or_after_it() -> None:
    desk = Desk()
    assert desk.run("--stack", "nowhere", *CAPTURE, "--payload", TEXT) == Exit.NOT_DONE
    assert desk.run(*CAPTURE, "--payload", TEXT, "--stack", "nowhere") == Exit.NOT_DONE
    assert desk.run("--json", *CAPTURE, "--payload", TEXT) == Exit.DONE
    assert desk.json["sent"]


def test_outputs_are_named_as_infra_names_them() -> None:
    outputs = {f"Queue{camel(worker.name)}": worker.name for worker in WORKERS}
    stack = Deployed("s", {**outputs, "QueueOrderLines": "order-lines"})
    assert [stack.queue_of(name) for name in (*outputs.values(), "order-lines")] == [*outputs.values(), "order-lines"]
    with pytest.raises(CommandError, match="no output QueueMissing"):
        stack.queue_of("missing")


def test_r2_7_a_payload_of_another_version_is_checked_as_the_consumer_reads_it() -> None:
    desk = Desk()
    assert desk.run(*CAPTURE, "--payload", TEXT, "--version", "1") == Exit.DONE
    assert desk.run(*CAPTURE, "--payload", TEXT, "--version", "9") == Exit.REFUSED
    assert "--version 9: capture-payment is at version" in desk.err
    assert desk.run(*CAPTURE, "--payload", TEXT, "--version", "0") == Exit.REFUSED
    assert len(desk.sent) == 1


def test_a_tenant_goes_with_the_message() -> None:
    desk = Desk()
    assert desk.run(*CAPTURE, "--payload", TEXT, "--tenant", "shop-1") == Exit.DONE
    ((_, outgoing),) = desk.sent
    assert (outgoing.tenant, read_message(outgoing.body).tenant) == ("shop-1", "shop-1")
    assert desk.run(*CAPTURE, "--payload", TEXT, "--tenant", "") == Exit.REFUSED


def test_standard_input_that_is_no_text_is_refused() -> None:
    desk = Desk()
    desk.given = io.TextIOWrapper(io.BytesIO(b"\xff\xfe{"), encoding="utf-8")
    assert desk.run(*CAPTURE, "-") == Exit.REFUSED
    assert "no UTF-8" in desk.err
