"""What the pages show: the same as the commands, and nothing that others have written as anything but text."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from functions.payments import capture_payment
from functions.registry import JOB_TYPES
from ops.exits import CommandError
from ops.stack.running import Depth, Receiving, Ringing
from shared.dead_letter import dossier
from shared.declaring.masked import Masked
from shared.errors import Unavailable
from shared.outcome import DeadLettered, Failure
from shared.payload import Payload
from shared.rounds.brake import Brake, BrakeState
from tests.console.letters import many
from tests.console.visitor import Visitor, words_of
from tests.ops.desk import Desk
from tests.ops.letters import QUEUE, bury, bury_raw, operation_of, record_of
from tests.world import START, World

if TYPE_CHECKING:
    from pathlib import Path

CANARY = "<script>alert('xss')</script>"
PAGES = ("/", "/letters", "/jobs", "/operations", "/locks", "/alarms", "/deeds", "/workers/payments")


@pytest.mark.parametrize("path", PAGES)
def test_each_page_renders_on_an_empty_stack(tmp_path: Path, path: str) -> None:
    text = Visitor(tmp_path).get(path)
    assert "<h1>" in text
    assert 'lang="en"' in text
    assert "<style" not in text
    assert " style=" not in text
    assert " onclick" not in text


def test_the_stack_shows_what_status_tells(tmp_path: Path) -> None:
    desk = Desk()
    desk.outputs["Api"] = "https://api.example"
    desk.running.depths["payments"] = Depth(1234, 7, 3, 42)
    desk.running.states["users"] = Receiving("Disabled", 5)
    desk.running.numbers = {"payments": {"age": 500.0, "succeeded": 900.0, "retried": 2.0}}
    desk.running.gates = {
        "payment-provider": {"open_for_s": 12.0, "down_for_s": 130.0, "calls": 0, "failures": 5, "ramping": False}
    }
    desk.running.flow = {"accepted": 55.0, "relayed": 77.0, "parked": 1.0}
    until = START + timedelta(hours=1)
    desk.brakes.brakes["invoices"] = Brake(BrakeState.PAUSED, "me", "migration", START, until, by_hand=True)
    told = words_of(Visitor(tmp_path, desk).get("/"))
    for expected in (
        "1,234",
        "(late)",
        "disabled",
        "migration",
        "payment-provider : down for 0:02:10",
        "55 accepted in 5 min",
        "1 parked",
    ):
        assert expected in told, expected


def test_what_cannot_be_told_is_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    desk = Desk()
    desk.running.gates = Unavailable("The lookout gave no answer (cache).", dependency="lookout")
    desk.running.flow = desk.running.numbers = Unavailable("cloudwatch gave no answer.", dependency="cloudwatch")
    text = Visitor(tmp_path, desk).get("/")
    assert "Breakers are not known: The lookout gave no answer" in text
    assert "Ages and rates are not known" in text
    assert "payments" in text


def test_an_alarm_leads_to_its_runbook_where_that_is_written(tmp_path: Path) -> None:
    (tmp_path / "docs" / "runbooks").mkdir(parents=True)
    (tmp_path / "docs" / "runbooks" / "queue-age.md").write_text(
        f"# Too old\n\n| a | b |\n|---|---|\n| c | d |\n\n{CANARY}\n"
    )
    desk = Desk()
    desk.running.ringing = [
        Ringing("tahan-dev-a", "OK", "[warn] Fine. Runbook: docs/runbooks/retries.md"),
        Ringing(
            "tahan-dev-b", "ALARM", f"[page] It waits {CANARY}. Runbook: docs/runbooks/queue-age.md", START, "over"
        ),
        Ringing("tahan-dev-c", "ALARM", "somebody else's"),
    ]
    visitor = Visitor(tmp_path, desk)
    text = visitor.get("/alarms")
    assert "Alarms: 2 ring, of 3" in text
    assert text.index("queue-age.md") < text.index("retries")
    assert "retries, to be written" in text
    assert CANARY not in text
    page = visitor.get("/docs/runbooks/queue-age.md")
    assert "<td>c</td>" in page
    assert CANARY not in page
    visitor.get("/docs/runbooks/retries.md")
    assert visitor.last.status_code == 404


def poisoned(desk: Desk) -> None:
    """A letter and a job record in which every text of others is a script."""
    bury_raw(desk, CANARY)
    failure = Failure(START, CANARY, f"Error: {CANARY}", CANARY, CANARY)
    bury(desk, f"key-{CANARY}", failure)
    delivery = World.of().delivery(
        json.dumps({"job_type": CANARY, "idempotency_key": CANARY, "payload": {CANARY: CANARY}})
    )
    desk.queues[QUEUE].dead_letter(delivery, dossier(delivery, DeadLettered(failure, 1)))
    desk.running.locks = [{"key": CANARY, "holder": CANARY, "left_s": 3.0}]
    desk.running.gates = {CANARY: {"open_for_s": 0, "down_for_s": None, "calls": 1, "failures": 0, "ramping": False}}
    desk.brakes.brakes["payments"] = Brake(
        BrakeState.PAUSED, CANARY, CANARY, START, START + timedelta(hours=1), by_hand=True
    )


def test_what_others_have_written_stays_text_on_every_page(tmp_path: Path) -> None:
    desk = Desk()
    poisoned(desk)
    visitor = Visitor(tmp_path, desk)
    names = [f"m{number}" for number in range(1, 4)]
    job = operation_of(f"key-{CANARY}")
    paths = [
        *PAGES,
        "/change/replay?all=1",
        "/change/discard?all=1",
        f"/jobs/{job}",
        f"/jobs/{job}?payload=1",
        f"/letters?reason={CANARY}",
        f"/jobs?key={CANARY}",
        f"/operations?owner={CANARY}",
        f"/locks?start={CANARY}",
        f"/{CANARY}",
        f"/jobs/{CANARY}",
    ]
    paths += [f"/letters/payments/{name}{more}" for name in names for more in ("", "?payload=1", "/edit")]
    seen = 0
    for path in paths:
        text = visitor.get(path)
        assert visitor.last.status_code in {200, 404, 409}, path
        assert "<script>" not in text.replace('<script src="/static/console.js" defer></script>', ""), path
        seen += "&lt;script&gt;" in text
    assert seen > 10, "the scripts are there, as text"


def test_nothing_personal_is_shown_unless_it_is_asked_for(tmp_path: Path) -> None:
    desk = Desk()
    bury(desk, "k1")
    visitor = Visitor(tmp_path, desk)
    job = operation_of("k1")
    for path in (
        "/letters",
        "/letters/payments/m1",
        "/jobs",
        f"/jobs/{job}",
        "/change/replay?all=1",
        "/change/discard?all=1",
    ):
        assert "secret" not in visitor.get(path), path
    assert "secret-k1" in visitor.get("/letters/payments/m1?payload=1")
    assert "secret-k1" in visitor.get(f"/jobs/{job}?payload=1")


class Card(Payload):
    """A capture with a secret."""

    order_id: str
    payment_intent_id: Annotated[str, Masked()]


def masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the intent of a capture be masked."""
    declared: Any = capture_payment
    job = replace(declared, payload=Card, lock=None)
    monkeypatch.setitem(JOB_TYPES.by_name, job.name, job)


def test_what_is_masked_is_unmasked_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masks(monkeypatch)
    desk = Desk()
    bury(desk, "k1")
    visitor = Visitor(tmp_path, desk)
    job = operation_of("k1")
    for path in (f"/jobs/{job}?payload=1", "/letters/payments/m1?payload=1", "/letters/payments/m1/edit"):
        text = visitor.get(path)
        assert "secret-k1" in text, path
        assert "pi_secret" not in text, path
        assert "***" in text, path
    text = visitor.post(
        "/letters/payments/m1/edit",
        job_type="capture-payment",
        payload=json.dumps({"order_id": "order-9", "payment_intent_id": "***"}),
    )
    assert "pi_secret" not in text
    assert "order-9" in text
    visitor.post("/change/edit", plan=visitor.plan, why="a wrong order")
    assert visitor.last.status_code == 200
    (sent,) = [json.loads(message.body) for message in desk.queues[QUEUE].messages.values()]
    assert sent["payload"] == {"order_id": "order-9", "payment_intent_id": "pi_secret"}, (
        "what was left hidden kept its value"
    )


def test_ten_thousand_letters_are_sampled_and_turned_over_in_pages(tmp_path: Path) -> None:
    desk = Desk()
    many(desk, 10_000)
    visitor = Visitor(tmp_path, desk)
    desk.running.depths["payments"] = Depth(0, 0, 0, 10_000)
    text = visitor.get("/letters?worker=payments")
    told = words_of(text)
    assert "500 read of about 10,000" in told
    assert "This is a sample" in told
    assert "Page 1 of 10" in told
    assert text.count('name="id"') == 50
    assert len(text) < 100_000
    visitor.get("/letters?worker=payments&most=all")
    visitor.house.looks["nothing/payments/10000"].wait(60)
    told = words_of(visitor.get("/letters?worker=payments&most=all&page=200"))
    assert "Page 200 of 200" in told
    assert "10,000 read of about 10,000" in told


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ClientError({"Error": {"Code": "ExpiredToken"}}, "DescribeStacks"), "aws sso login"),
        (NoCredentialsError(), "There are no AWS credentials"),
        (ClientError({"Error": {"Code": "AccessDenied"}}, "DescribeStacks"), "lack that permission"),
        (CommandError("There is no stack 'tahan-dev' in eu-central-1: name it with --stack."), "name it with --stack"),
    ],
)
def test_what_went_wrong_with_aws_is_told_with_what_to_do_and_is_looked_at_anew(
    tmp_path: Path, error: Exception, told: str
) -> None:
    desk = Desk()
    problem: list[Exception] = [error]

    def deployed(name: str) -> Any:
        if problem:
            raise problem[0]
        return desk._deployed(name)

    visitor = Visitor(tmp_path, desk, deployed=deployed)
    for path in ("/", "/letters", "/jobs", "/locks", "/alarms"):
        text = visitor.get(path)
        assert visitor.last.status_code == 502, path
        assert told in words_of(text), path
        assert "data-problem" in text
    problem.clear()
    assert "The stack" in visitor.get("/")


def test_redis_that_is_not_reachable_is_told_on_the_page_of_locks(tmp_path: Path) -> None:
    desk = Desk()
    desk.running.gates = Unavailable("The lookout gave no answer (Redis does not answer).", dependency="lookout")
    assert "Redis does not answer" in Visitor(tmp_path, desk).get("/locks")


def test_an_error_that_nobody_thought_of_is_a_page_and_no_stack_of_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = Desk()
    desk.running.numbers = ZeroDivisionError("secret")
    visitor = Visitor(tmp_path, desk)
    text = visitor.get("/")
    assert visitor.last.status_code == 500
    assert "ZeroDivisionError" in text
    assert "secret" not in text
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_job_is_found_by_id_by_key_by_resource_and_by_state(tmp_path: Path) -> None:
    desk = Desk()
    bury(desk, "k1")
    visitor = Visitor(tmp_path, desk)
    job = operation_of("k1")
    for query in (f"id={job}", f"id={record_of('k1')}", "key=k1&job_type=capture-payment"):
        assert f"{job}" in visitor.get(f"/jobs?{query}")
        assert "What happened" in visitor.last.text
    for query in (
        "key=k1",
        "state=dead-lettered",
        "resource=order/secret-k1",
        "owner=system",
        "job_type=capture-payment",
    ):
        assert f'href="/jobs/{job}"' in visitor.get(f"/jobs?{query}"), query
    for query in ("key=k2", "state=done", "resource=order/other", "owner=jwt:a:b"):
        assert "There are none among them" in visitor.get(f"/jobs?{query}"), query
    visitor.get("/jobs?state=nonsense")
    assert visitor.last.status_code == 409


@pytest.mark.parametrize(
    "path",
    [
        "/workers/nobody",
        "/letters?worker=nobody",
        "/letters/nobody/m1",
        "/letters/nobody/m1/edit",
        "/change/replay?worker=nobody&all=1",
    ],
)
def test_a_worker_that_the_stack_does_not_run_is_no_page(tmp_path: Path, path: str) -> None:
    visitor = Visitor(tmp_path)
    assert "runs no worker 'nobody'. It runs payments" in words_of(visitor.get(path))
    assert visitor.last.status_code == 404


def test_what_a_look_was_refused_for_is_told_as_a_command_would_end(tmp_path: Path) -> None:
    desk = Desk()
    visitor = Visitor(tmp_path, desk)
    text = words_of(visitor.get("/letters/payments/unknown"))
    assert "There is no dead letter 'unknown'" in text
    assert visitor.last.status_code == 404


def test_a_job_tells_what_happened_to_it_in_order(tmp_path: Path) -> None:
    desk = Desk()
    bury(desk, "k1")
    told = words_of(Visitor(tmp_path, desk).get(f"/jobs/{operation_of('k1')}"))
    assert "transient (payment-provider): Unavailable: 503" in told
    assert "dead-lettered" in told
    assert "replay its letter" in told.lower()


def test_a_live_part_is_the_content_alone(tmp_path: Path) -> None:
    visitor = Visitor(tmp_path)
    part = visitor.get("/", **{"X-Part": "1"})
    assert "<html" not in part
    assert "The stack" in part
    assert "X-Over" not in visitor.last.headers
    visitor.get("/operations", **{"X-Part": "1"})
    assert visitor.last.headers["X-Over"] == "1"
