"""What DynamoDB's errors mean: a busy table waits, a lost reply is looked up, a refusal is told, nothing is guessed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from shared.backends.aws import translated
from shared.backends.dynamodb.fences import DynamoDBFences
from shared.backends.dynamodb.items import DynamoDBItems, plain
from shared.backends.dynamodb.job_record_layer import JobRecordLayer
from shared.backends.dynamodb.job_records import DynamoDBJobRecords
from shared.backends.dynamodb.parts import DynamoDBParts
from shared.backends.dynamodb.transactions import TRIES, Cancelled, transact
from shared.claim import Claim, Ended, Granted, HeldByOther
from shared.commit import Commit, Release
from shared.errors import ClaimLost, Conflict, NoAnswer, Refused, SettingsError, StoreUnavailable, Unavailable
from shared.job_record import Hold, JobView, Status
from shared.outbox import Posting
from tests.world import START, THINGS, FakeClock

HOLD = Hold("r", "mine")
TIMEOUT = ReadTimeoutError(endpoint_url="http://dynamodb")


def error(code: str, status: int = 400, **more: Any) -> ClientError:
    response = {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}, **more}
    return ClientError(response, "Operation")  # type: ignore[arg-type]


def cancelled(*codes: str, item: dict[str, Any] | None = None) -> ClientError:
    reasons: list[dict[str, Any]] = [{"Code": code} for code in codes]
    if item is not None:
        reasons[0]["Item"] = item
    return error("TransactionCanceledException", CancellationReasons=reasons)


def item(status: str, token: str = "mine", until: int = 0) -> dict[str, Any]:
    return {
        "id": {"S": "r"},
        "status": {"S": status},
        "attempts": {"N": "1"},
        "fingerprint": {"S": "1:a"},
        "attempt_token": {"S": token},
        "in_progress_expiration": {"N": str(until)},
    }


@dataclass
class Stub:
    """A client that gives one prepared answer after the other; the last one stays."""

    writes: list[Any] = field(default_factory=list)
    reads: list[Any] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def _next(self, name: str, answers: list[Any]) -> Any:
        self.calls.append(name)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def update_item(self, **request: Any) -> Any:
        return self._next("update", self.writes)

    def transact_write_items(self, **request: Any) -> Any:
        return self._next("transact", self.writes)

    def get_item(self, **request: Any) -> Any:
        return self._next("get", self.reads)


def records(stub: Stub, clock: FakeClock | None = None) -> DynamoDBJobRecords:
    layer = JobRecordLayer.__new__(JobRecordLayer)
    layer.client = stub  # type: ignore[assignment]
    layer.table_name, layer.key_attr, layer.sort_key_attr = "jobs", "id", None
    layer.use_local_cache = False
    layer.items, layer.outbox_table = DynamoDBItems(stub, {"things": "t"}), "outbox"
    clock, random = clock or FakeClock(), Random(1)  # noqa: S311 - repeatable
    return DynamoDBJobRecords(layer, DynamoDBFences(stub, "jobs", clock, random), clock, random)


def claim() -> Claim:
    return Claim("r", "system", "note", "k", "1:a", "{}", 1, "mine", START + timedelta(seconds=30), 3, 0)


def commit(stub: Stub, clock: FakeClock | None = None) -> None:
    records(stub, clock).commit(HOLD, Commit(Status.COMPLETED), START)


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_out_08_a_commit_that_others_got_in_the_way_of_is_tried_again_after_a_wait(code: str) -> None:
    clock = FakeClock()
    stub = Stub([cancelled("None", code), cancelled("None", code), {}])
    commit(stub, clock)
    assert stub.calls == ["transact"] * 3
    assert len(clock.slept) == 2
    assert clock.slept != [0, 0]


def test_out_08_a_commit_that_stays_in_conflict_is_unavailable_not_a_duplicate() -> None:
    stub = Stub([cancelled("None", "TransactionConflict")])
    with pytest.raises(Unavailable, match="busy"):
        commit(stub)
    assert stub.calls == ["transact"] * TRIES


def test_out_08_mixed_reasons_are_told_apart() -> None:
    with pytest.raises(Conflict, match="Item 1"):
        commit(Stub([cancelled("None", "ConditionalCheckFailed", "TransactionConflict")]))
    with pytest.raises(ClaimLost):
        commit(Stub([cancelled("ConditionalCheckFailed", "ConditionalCheckFailed", item=item("running", "other"))]))
    with pytest.raises(ClaimLost):
        commit(Stub([cancelled("ConditionalCheckFailed", item=item("cancelled"))]))


def test_out_08_a_refused_value_is_not_tried_again() -> None:
    stub = Stub([cancelled("None", "ValidationError")])
    with pytest.raises(Refused):
        commit(stub)
    assert stub.calls == ["transact"]
    with pytest.raises(Refused):
        commit(Stub([error("ValidationException")]))


def test_a_transaction_tells_of_each_entry_what_is_in_its_way() -> None:
    clock = FakeClock()
    entries: list[dict[str, Any]] = [{}, {}, {}]
    raised = cancelled("ConditionalCheckFailed", "TransactionConflict", "ConditionalCheckFailed", item=item("running"))
    answer = transact(Stub([raised]), entries, clock, Random(1))  # noqa: S311 - repeatable
    assert answer == Cancelled((item("running"), None, {}))
    assert transact(Stub([{}]), entries, clock, Random(1)) is None  # noqa: S311
    short = transact(Stub([cancelled("ConditionalCheckFailed", item=item("running"))]), entries, clock, Random(1))  # noqa: S311
    assert short == Cancelled((item("running"), None, None))
    assert clock.slept == []


def test_a_parent_is_woken_although_others_get_in_the_way_for_a_moment() -> None:
    clock, parent = FakeClock(), JobView("r", Status.WAITING, 1, "1:a")
    stub = Stub([cancelled("TransactionConflict", "None"), {}])
    DynamoDBParts(stub, "jobs", "outbox", clock, Random(1)).wake(parent, Posting("p", "notes", "{}"), START)  # noqa: S311
    assert stub.calls == ["transact"] * 2
    assert len(clock.slept) == 1


@pytest.mark.parametrize("reasons", [{}, {"CancellationReasons": []}], ids=repr)
def test_a_transaction_that_is_cancelled_without_a_reason_is_unavailable(reasons: dict[str, Any]) -> None:
    raised, clock = error("TransactionCanceledException", **reasons), FakeClock()
    with pytest.raises(StoreUnavailable):
        commit(Stub([raised]), clock)
    with pytest.raises(StoreUnavailable):
        fence(raised)
    assert clock.slept == []  # nobody said that another try would help


def test_a_busy_table_is_not_looked_at() -> None:
    stub = Stub([cancelled("None", "TransactionConflict")])
    with pytest.raises(StoreUnavailable):
        commit(stub)
    assert "get" not in stub.calls


def test_a_commit_whose_earlier_try_landed_is_done() -> None:
    commit(Stub([cancelled("ConditionalCheckFailed", "ConditionalCheckFailed", item=item("completed"))]))


def test_a_commit_without_an_answer_is_looked_up() -> None:
    commit(Stub([TIMEOUT], [{"Item": item("completed")}]))
    with pytest.raises(Unavailable):
        commit(Stub([TIMEOUT], [{"Item": item("running")}]))
    with pytest.raises(Unavailable):
        commit(Stub([TIMEOUT], [{"Item": item("completed", "other")}]))
    with pytest.raises(NoAnswer):
        commit(Stub([TIMEOUT], [TIMEOUT]))


def test_a_claim_without_an_answer_is_looked_up_by_its_token() -> None:
    answer = records(Stub([TIMEOUT], [{"Item": item("running", until=99)}])).claim(claim(), START)
    assert isinstance(answer, Granted)
    with pytest.raises(Unavailable):
        records(Stub([TIMEOUT], [{"Item": item("running", "other")}])).claim(claim(), START)
    with pytest.raises(Unavailable):
        records(Stub([TIMEOUT], [{}])).claim(claim(), START)


def test_a_claim_that_keeps_losing_races_is_postponed() -> None:
    stub = Stub([error("ConditionalCheckFailedException", Item=item("retrying", "other"))])
    with pytest.raises(Unavailable, match="too fast"):
        records(stub).claim(claim(), START)
    assert stub.calls == ["update"] * 3


def test_a_claim_that_lost_to_a_take_over_sees_its_holder() -> None:
    until = 1_900_000_000_000
    stub = Stub([error("ConditionalCheckFailedException", Item=item("running", "other", until))])
    assert isinstance(records(stub).claim(claim(), START), HeldByOther)
    stub = Stub([error("ConditionalCheckFailedException", Item=item("completed", "other"))])
    assert records(stub).claim(claim(), START) == Ended(Status.COMPLETED)


@pytest.mark.parametrize(
    "raised",
    [
        error("ProvisionedThroughputExceededException"),
        error("ThrottlingException"),
        error("InternalServerError", 500),
        TIMEOUT,
    ],
    ids=repr,
)
def test_throttling_and_silence_are_unavailable(raised: Exception) -> None:
    with pytest.raises(Unavailable):
        records(Stub([raised], [raised])).claim(claim(), START)
    with pytest.raises(Unavailable):
        records(Stub([raised])).release(HOLD, Release(START), START)
    with pytest.raises(Unavailable):
        records(Stub(reads=[raised])).view("r")


def test_a_table_that_is_missing_is_loud_and_a_missing_permission_waits_for_a_deploy() -> None:
    with pytest.raises(ClientError):
        records(Stub([error("ResourceNotFoundException")])).claim(claim(), START)
    denied = error("AccessDeniedException")
    with pytest.raises(Unavailable):
        commit(Stub([denied], [denied]))


def test_a_table_that_the_function_was_not_given_is_named() -> None:
    with pytest.raises(SettingsError, match="'things'"):
        DynamoDBItems(Stub(), {}).read(THINGS, ("a",))


def test_values_come_back_as_plain_python(aws_endpoint: str) -> None:
    from shared.backends.aws import client  # noqa: PLC0415
    from tests.aws import Database  # noqa: PLC0415

    database = Database.create(THINGS)
    wire = {
        "id": {"S": "a"},
        "version": {"N": "4"},
        "n": {"N": "12345678901234567890123456789012345678"},
        "d": {"N": "30.45"},
        "b": {"B": b"\x00\xff"},
        "l": {"L": [{"N": "1"}, {"BOOL": True}, {"NULL": True}]},
        "m": {"M": {"x": {"S": ""}}},
        "s": {"SS": ["x", "y"]},
    }
    client("dynamodb").put_item(TableName=database.tables["things"], Item=wire)
    stored = database.items.read(THINGS, ("a",))
    assert stored is not None
    assert stored.version == 4
    assert stored.attributes == {
        "id": "a",
        "n": 12345678901234567890123456789012345678,
        "d": plain(stored.attributes["d"]),
        "b": b"\x00\xff",
        "l": [1, True, None],
        "m": {"x": ""},
        "s": frozenset({"x", "y"}),
    }
    assert str(stored.attributes["d"]) == "30.45"


def fence(*answers: Any) -> int:
    return records(Stub(list(answers), [{"Item": {"attempt_token": {"S": "mine"}, "fence": {"N": "7"}}}])).fence(
        HOLD, "k"
    )


def test_a_fence_that_others_get_in_the_way_of_is_tried_again() -> None:
    conflict = cancelled("None", "TransactionConflict")
    assert fence(conflict, {}) == 7
    clock = FakeClock()
    stub = Stub([conflict])
    with pytest.raises(StoreUnavailable, match="busy"):
        records(stub, clock).fence(HOLD, "k")
    assert stub.calls == ["transact"] * TRIES
    assert len(clock.slept) == TRIES - 1


def test_a_fence_that_dynamodb_refuses_is_not_said_to_be_busy() -> None:
    with pytest.raises(Refused):
        fence(cancelled("None", "ValidationError"))


def test_a_fence_whose_reply_was_lost_is_read_back() -> None:
    assert fence(cancelled("None", "ConditionalCheckFailed")) == 7
    with pytest.raises(ClaimLost):
        fence(cancelled("ConditionalCheckFailed", "None"))


def test_an_item_that_is_no_job_record_yet_has_the_claim_tried_again() -> None:
    half = error("ConditionalCheckFailedException", Item={"id": {"S": "r"}})
    answer = records(Stub([half, {"Attributes": item("running", until=99)}])).claim(claim(), START)
    assert isinstance(answer, Granted)
    with pytest.raises(Unavailable, match="too fast"):
        records(Stub([half])).claim(claim(), START)


@pytest.mark.parametrize("service", ["dynamodb", "s3"])
@pytest.mark.parametrize("raised", [error("ThrottlingException"), TIMEOUT], ids=repr)
def test_a_store_that_is_away_is_told_from_every_other_service_by_its_class(service: str, raised: Exception) -> None:
    with pytest.raises(StoreUnavailable), translated(service):
        raise raised
    with pytest.raises(Unavailable) as other, translated("sqs"):
        raise raised
    assert not isinstance(other.value, StoreUnavailable)
