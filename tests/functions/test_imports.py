"""Importing files: every row once or in the report, whatever dies; what cannot be imported is told and loses nothing."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from functions import imports
from functions.imports import ROWS_AT_ONCE, ROWS_IN_PART
from local.demo.situations import EVENTS
from local.outside.payment_provider import Provider
from shared.backends.aws import client
from shared.failpoints import Failpoint, armed
from shared.job_record import SYSTEM, Status, record_id
from shared.outcome import Completed, DeadLettered, Waiting
from tests.dying import Killed, dying
from tests.functions.imports_case import HEADER, Case, message, rows
from tests.stack import new_stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.stack.valkey import Valkey
    from shared.outcome import Outcome


def test_r5_1_a_file_is_imported_and_its_bad_rows_are_reported_by_line_and_reason() -> None:
    case = Case("spring.csv", HEADER + rows(2500, bad_every=100) + '"A-1","two\nlines, ""quoted""",0.50,0\n')
    outcomes = case.run()
    assert outcomes[0] == Waiting()
    assert set(outcomes[1:]) == {Completed(1)}
    assert case.result() == {
        "rows": 2501,
        "written": 2476,
        "refused": 25,
        "parts": 3,
        "failed_parts": 0,
        "report": f"reports/{case.view().names['operation_id']}/{case.view().split.name}.jsonl",  # type: ignore[union-attr]
    }
    report = case.report()
    assert [each["line"] for each in report] == [100 * number + 1 for number in range(1, 26)]
    assert {each["reason"] for each in report} == {"price: decimal_parsing"}
    written = case.written()
    assert len(written) == 2476
    assert (written[0]["line"], written[0]["sku"], written[0]["price"]) == (2, "sku-0", Decimal("9.99"))
    assert (written[-1]["line"], written[-1]["name"]) == (2502, 'two\nlines, "quoted"')
    tally = case.view().tally
    assert tally is not None
    assert (tally.total, tally.succeeded) == (3, 3)


def test_json_lines_are_imported_too() -> None:
    good = '{"sku":"a","name":"b","price":"1.5","stock":1}'
    case = Case("spring.ndjson", f"{good}\n\nnonsense\n{good}")
    case.run()
    assert case.result() | {"report": None} == {
        "rows": 3,
        "written": 2,
        "refused": 1,
        "parts": 1,
        "failed_parts": 0,
        "report": None,
    }
    assert case.report() == [{"line": 3, "reason": "body: json_invalid"}]
    assert [row["line"] for row in case.written()] == [1, 4]


@pytest.mark.parametrize(
    ("source", "text"), [("empty.jsonl", ""), ("empty.csv", HEADER), ("blank.csv", HEADER + "\n\n  \n")]
)
def test_a_file_without_rows_is_imported_at_once(source: str, text: str) -> None:
    case = Case(source, text)
    assert case.run() == [Completed(1)]
    assert (case.result()["rows"], case.result()["parts"], case.report()) == (0, 0, [])


@pytest.mark.parametrize(
    ("source", "text", "reason"),
    [
        ("other.csv", "a,b\n1,2\n", "wrong-columns"),
        ("nothing.csv", "", "wrong-columns"),
        ("picture.png", "x", "unknown-format"),
    ],
)
def test_a_file_that_is_no_list_of_products_is_dead_lettered_with_its_reason(
    source: str, text: str, reason: str
) -> None:
    case = Case(source, text)
    (outcome,) = case.run()
    assert isinstance(outcome, DeadLettered)
    assert (outcome.failure.reason, case.written()) == (reason, [])


def test_a_file_that_is_not_there_is_dead_lettered() -> None:
    case = Case("there.csv", HEADER)
    (outcome,) = case.run([message("absent.csv")])
    assert isinstance(outcome, DeadLettered)
    assert outcome.failure.reason == "unknown-source"


def test_a_file_that_is_written_anew_meanwhile_is_not_mixed_with_what_it_was() -> None:
    case = Case("spring.csv", HEADER + rows(1500))
    runtime = case.world.runtime
    delivery = case.world.delivery(message("spring.csv"))
    with runtime.keeper:
        runtime.execution.execute(delivery, case.clock.now() + case.world.worker.function_timeout)
    case.put(HEADER + rows(1500, first=5000))
    outcomes = case.run(case.messages())
    dead = [outcome for outcome in outcomes if isinstance(outcome, DeadLettered)]
    assert [outcome.failure.reason for outcome in dead] == ["source-changed"] * 2
    assert case.result() == {"rows": 0, "written": 0, "refused": 0, "parts": 2, "failed_parts": 2, "report": None}
    assert case.written() == []


@pytest.mark.parametrize(
    ("point", "every"),
    [
        (Failpoint.CHECKPOINTED, 1),
        (Failpoint.CHECKPOINTED, 3),
        (Failpoint.FILE_WRITTEN, 1),
        (Failpoint.FILE_WRITTEN, 3),
        (Failpoint.COMMITTED, 1),
        (Failpoint.COMMITTED, 3),
        (Failpoint.WAITING, 1),
    ],
)
def test_r5_2_whoever_dies_on_the_way_each_row_is_written_once_and_each_refusal_told_once(
    point: Failpoint, every: int
) -> None:
    clean = Case("spring.csv", HEADER + rows(2100, bad_every=50))
    clean.run()
    case = Case("spring.csv", HEADER + rows(2100, bad_every=50))
    passed: list[Failpoint] = []
    deaths: list[int] = []

    def die(here: Failpoint) -> None:
        if here is point:
            passed.append(here)
            if len(passed) % (every + 1) == every and len(deaths) < 6:
                deaths.append(len(passed))
                raise Killed

    with armed(die):
        case.run(dies=Killed)
    assert deaths
    assert case.view().status is Status.COMPLETED
    assert (case.written(), case.report(), case.result()) == (clean.written(), clean.report(), clean.result())


def test_a_part_that_is_taken_over_does_not_write_its_first_rows_again() -> None:
    case = Case("spring.csv", HEADER + rows(ROWS_IN_PART))
    with dying(Failpoint.CHECKPOINTED, 4) as passed:  # one of the parent, three of its part
        case.run(dies=Killed)
    assert len(case.written()) == ROWS_IN_PART
    # The parent's two (its splitting is one, and there is none more), and each batch of the part once.
    assert passed[Failpoint.CHECKPOINTED] == 1 + ROWS_IN_PART // ROWS_AT_ONCE


def test_a_dead_part_is_counted_and_its_replay_brings_its_rows() -> None:
    case = Case("spring.csv", HEADER + rows(1500))
    look = case.world.files.read
    broken = [True]

    def failing(bucket: str, key: str, tag: str, start: int, end: int) -> Any:
        body = look(bucket, key, tag, start, end)
        if broken and len(case.database.outbox) > 1 and start > 20_000:  # the second part
            raise ValueError
        return body

    case.world.files.read = failing
    case.run()
    assert (case.result()["failed_parts"], len(case.written())) == (1, ROWS_IN_PART)
    broken.clear()
    ((delivery, _),) = case.world.queue.dead
    runtime = case.world.runtime
    again = case.world.delivery(delivery.body, death=1)
    with runtime.keeper:
        assert runtime.execution.execute(again, case.clock.now() + case.world.worker.function_timeout) == Completed(1)
    case.run([])
    tally = case.view().tally
    assert tally is not None
    assert (tally.succeeded, tally.dead_lettered, len(case.written())) == (2, 0, 1500)


@pytest.mark.parametrize("dies", [False, True])
def test_files_of_many_parts_are_split_in_steps_and_on_behind_them(*, dies: bool) -> None:
    case = Case("large.jsonl", ('{"sku":"a","name":"b","price":"1","stock":1}\n') * 51_001)

    def deliver() -> Outcome:
        runtime = case.world.runtime
        with runtime.keeper:
            return runtime.execution.execute(
                case.world.delivery(message("large.jsonl")), case.clock.now() + case.world.worker.function_timeout
            )

    if dies:
        with dying(Failpoint.CHECKPOINTED), pytest.raises(Killed):
            deliver()
        case.clock.pass_(timedelta(minutes=7))
    assert deliver() == Waiting()
    split = case.view().split
    assert split is not None
    assert (split.parts, split.blocks, case.view().checkpoints) == (52, 2, 2)
    ranges = sorted(
        (view.place.number, view.payload) for view in case.database.all_parts(split) if view.place is not None
    )
    places = [imports.ImportPart.model_validate_json(payload) for _, payload in ranges]
    assert [part.line for part in places] == [1 + ROWS_IN_PART * number for number in range(52)]
    assert [part.start for part in places[1:]] == [part.end for part in places[:-1]]
    assert (places[0].start, places[-1].end) == (0, 45 * 51_001)


@pytest.mark.parametrize("seed", range(3))
def test_a_file_of_all_kinds_of_rows_is_imported_as_one_that_is_read_at_once(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - repeatable
    kinds = (
        lambda n: f"sku-{n},plain,1.00,1\n",
        lambda n: f'sku-{n},"two\nlines",1.00,1\n',
        lambda n: f'sku-{n},"open,1.00,1\n',
        lambda n: f"sku-{n},short\n",
        lambda n: "\n",
        lambda n: f'sku-{n},"a ""quoted"" word",2.50,7\r\n',
    )
    weights = (50, 5, 1, 2, 2, 5)
    text = HEADER + "".join(random.choices(kinds, weights)[0](n) for n in range(3000))
    case = Case("kinds.csv", text)
    case.run()
    result = case.result()
    assert result["rows"] == result["written"] + result["refused"]
    assert len(case.written()) == result["written"]
    assert len(case.report()) == result["refused"]
    lines = [row["line"] for row in case.written()] + [each["line"] for each in case.report()]
    assert len(set(lines)) == len(lines)
    assert case.report() == sorted(case.report(), key=lambda each: each["line"])


# Every file of events/imports on real stores.

FILES = EVENTS.parent / "imports"
ENDS: dict[str, tuple[Status, str | None]] = {
    "new-file": (Status.COMPLETED, None),
    "same-message-three-times": (Status.COMPLETED, None),
    "unknown-source": (Status.DEAD_LETTERED, "unknown-source"),
    "unknown-format": (Status.DEAD_LETTERED, "unknown-format"),
    "wrong-payload": (Status.ACCEPTED, "invalid-payload"),  # it has no record: no attempt was made
}


def test_there_is_an_end_for_each_file() -> None:
    assert {path.stem for path in FILES.glob("*.json")} == set(ENDS)


@pytest.fixture
def provider(aws_endpoint: str) -> Iterator[Provider]:
    """An outside system that nobody calls."""
    with Provider(0) as provider:
        yield provider


@pytest.mark.parametrize("name", ENDS)
def test_each_file_ends_as_it_must(name: str, aws_endpoint: str, valkey: Valkey, provider: Provider) -> None:
    stack = new_stack(valkey, provider, worker=imports.WORKER)
    text = HEADER + rows(30, bad_every=10)
    client("s3").put_object(Bucket=stack.settings.buckets["imports"], Key="uploads/products.csv", Body=text.encode())
    event = json.loads((FILES / f"{name}.json").read_text(encoding="utf-8"))
    for record in event["Records"]:
        assert record["md5OfBody"] == hashlib.md5(record["body"].encode()).hexdigest()  # noqa: S324 - SQS's own
        stack.send(record["body"])
    stack.run()
    status, reason = ENDS[name]
    key = json.loads(event["Records"][0]["body"])["idempotency_key"]
    view = stack.database.records(stack.runtime.clock).view(record_id(SYSTEM, "import-data", key))
    assert [dead["reason"] for _, dead in stack.dead_letters()] == ([] if reason is None else [reason])
    if status is Status.ACCEPTED:
        assert view is None
        return
    assert view is not None
    assert view.status is status
    if status is Status.COMPLETED:
        result = json.loads(view.result or "")
        assert (result["rows"], result["written"], result["refused"], result["parts"]) == (30, 27, 3, 1)
        body = client("s3").get_object(Bucket=stack.settings.buckets["imports"], Key=result["report"])["Body"].read()
        assert [json.loads(line)["line"] for line in body.splitlines()] == [11, 21, 31]


def test_a_file_that_is_imported_again_under_its_key_after_the_first_is_forgotten_is_imported() -> None:
    case = Case("spring.csv", HEADER + rows(30, bad_every=10))
    case.run()
    case.clock.pass_(timedelta(days=32))
    case.run([message("spring.csv")])
    assert (case.result()["written"], case.result()["failed_parts"]) == (27, 0)
    assert len(case.database.items) == 54
