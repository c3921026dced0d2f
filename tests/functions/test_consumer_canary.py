"""What messages carry, and what handlers and outside systems say, stands in no log and no metric of a consumer (I48); nor in its environment."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from infra.assembly import synthesise, template_path
from shared.backends.memory.transport import MemoryTransport
from shared.backends.powertools import PowertoolsTelemetry
from shared.dependency import Dependency, Reply
from shared.errors import DeadLetter, RetryLater, Unavailable
from shared.outcome import Failed
from tests.world import Note, World, body, record_of
from tests.world import event as batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.unit_of_work import UnitOfWork

fresh = itertools.count()
CANARY = "c4n4ry"
BREAKS = f'{CANARY}\r\n{{"level":"ERROR"}}\x1b[31m'
SHOP = Dependency("shop", timeout=timedelta(seconds=1))
SECRET = {"thing": CANARY}


def said(capsys: pytest.CaptureFixture[str], *records: dict[str, Any], **options: Any) -> list[str]:
    """All that a consumer says of a batch, each line of it JSON."""
    handler: Callable[[Note, UnitOfWork], object] | None = options.pop("handler", None)
    world = World.of(handler, **options)
    world.telemetry = PowertoolsTelemetry(f"notes-{next(fresh)}")  # type: ignore[assignment]
    asked: list[str] = []

    def answer(_method: str, path: str, *_: object) -> Reply:
        asked.append(path)
        return Reply(500, {"error": CANARY})

    world.transport = MemoryTransport(answer)
    world.handle(batch(*records))
    assert asked == ([f"/{CANARY}"] if handler is calling else [])
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines)
    return lines


def raising(error: Exception) -> Callable[[Note, UnitOfWork], object]:
    def handler(_: Note, __: UnitOfWork) -> object:
        raise error

    return handler


def calling(_: Note, work: UnitOfWork) -> object:
    return work.call(SHOP, "POST", f"/{CANARY}", body={"card": CANARY}, headers={"X-Canary": CANARY})


@pytest.mark.parametrize(
    "handler",
    [
        None,
        raising(ValueError(BREAKS)),
        raising(RetryLater(BREAKS)),
        raising(Unavailable(BREAKS, dependency="shop")),
        raising(DeadLetter("because", BREAKS)),
        lambda _, __: Failed("refused", BREAKS),
        calling,
    ],
    ids=["completes", "breaks", "retries", "unavailable", "dead-letters", "fails", "calls"],
)
def test_i48_nothing_of_a_payload_a_key_or_an_error_is_logged(
    handler: Callable[[Note, UnitOfWork], object] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    message = body(idempotency_key=f"key-{CANARY}", payload=SECRET)
    lines = said(capsys, record_of(message), handler=handler, uses=(SHOP,) if handler is calling else ())
    assert [line for line in lines if CANARY in line] == []


@pytest.mark.parametrize(
    "text",
    [
        f'{{"job_type": "note", "idempotency_key": "{CANARY}"',
        CANARY,
        body(payload={"thing": {"nested": CANARY}}),
        body(idempotency_key=f"{CANARY}\n"),
        body(job_type=CANARY),
        body(tenant=BREAKS, format=2),
    ],
    ids=["cut", "no-json", "wrong-payload", "wrong-key", "unknown-type", "wrong-tenant"],
)
def test_i48_nothing_of_a_message_that_cannot_be_read_is_logged(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, record_of(text))
    assert [line for line in lines if CANARY in line] == []


def test_i48_nor_of_attributes_that_others_have_put_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    strange = {CANARY: {"stringValue": BREAKS, "dataType": "String"}}
    record = record_of(body(payload=SECRET), attributes=strange)
    record["attributes"] |= {"MessageGroupId": CANARY}
    assert [line for line in said(capsys, record) if CANARY in line] == []


def test_no_functions_environment_holds_more_than_names_and_addresses() -> None:
    template = json.loads(template_path(synthesise("dev"), "dev").read_text(encoding="utf-8"))
    functions = [r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::Lambda::Function"]
    names = {name for each in functions for name in each["Environment"]["Variables"]}
    assert not {name for name in names if any(word in name for word in ("SECRET", "PASSWORD", "TOKEN", "KEY"))}
    texts = {
        value for each in functions for value in each["Environment"]["Variables"].values() if isinstance(value, str)
    }
    assert not {text for text in texts if len(text) > 100}
