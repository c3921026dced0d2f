"""Who sees what: every route, with what is one's own, another's, absent, malformed and expired, by every kind of caller."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions.http.answers import HEADERS
from functions.http.operations import shown
from functions.http.routes import ROUTES
from shared.backends.memory.rates import MemoryRates
from shared.commit import Progress
from shared.intake.operation import OF_JOB, operation_of
from shared.job_record import Status
from shared.outcome import Failure
from shared.settings import OwnerLimits
from tests.door import Client, payload
from tests.functions.house import House
from tests.world import START, FakeClock

if TYPE_CHECKING:
    from shared.rate import Rate
    from tests.door import Answer

PLENTY = OwnerLimits(requests_per_second=1000, burst=1000, unfinished=1000)
ABSENT = "op_" + "0" * 64
MALFORMED = (
    "op_",
    "op_" + "0" * 63,
    "op_" + "0" * 65,
    "op_" + "G" * 64,
    "x",
    "%00",
    "op_" + "٣" * 64,
    "op_" + "0" * 64 + "\n",
)


@dataclass
class Asked:
    """What was asked of the store, by name."""

    inner: Any
    names: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        self.names.append(name)
        return getattr(self.inner, name)


class Street:
    """A house in which two owners have operations, and somebody knows all their names."""

    def __init__(self) -> None:
        self.house = House(PLENTY)
        self.http: Client = self.house.http
        self.ids = {
            "own": self.accept("user-1", "own"),
            "foreign": self.accept("user-2", "foreign"),
            "expired": self.accept("user-1", "expired", expired=True),
            "absent": ABSENT,
            **{f"malformed {number}": text for number, text in enumerate(MALFORMED)},
        }
        self.nexts = {
            "own": self.next_of("user-1"),
            "foreign": self.next_of("user-2"),
            "malformed 0": "x",
            "malformed 1": "",
            "malformed 2": "AAAA",
        }

    def accept(self, user: str, key: str, *, expired: bool = False) -> str:
        identifier: str = self.http.post(payload(key), key=key, user=user)[1]["operation_id"]
        if expired:
            self.http.delete(identifier, user=user)
            record = identifier.removeprefix("op_")
            view = self.house.database.records[record]
            self.house.database.records[record] = replace(view, expires=self.house.clock.now())
        return identifier

    def next_of(self, user: str) -> str:
        for number in range(2):
            self.http.post(payload(f"more-{user}"), key=f"more-{number}", user=user)
        place: str = self.http.list("limit=1", user=user)[1]["next"]
        return place


@pytest.fixture
def street() -> Street:
    return Street()


NOT_MINE = ["foreign", "expired", "absent", *(f"malformed {number}" for number in range(len(MALFORMED)))]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("target", NOT_MINE)
def test_api1_what_is_not_mine_is_as_absent_as_what_never_was(street: Street, method: str, target: str) -> None:
    before = dict(street.house.database.records)
    path = f"/operations/{street.ids[target]}"
    answer = street.http.request(method, path, user="user-1")
    assert answer == street.http.request(method, f"/operations/{ABSENT}", user="user-1")
    assert answer[0] == 404
    assert street.house.database.records == before


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_api1_what_is_mine_is_there(street: Street, method: str) -> None:
    assert street.http.request(method, f"/operations/{street.ids['own']}", user="user-1")[0] == 200


@pytest.mark.parametrize("target", ["foreign", "malformed 0", "malformed 1", "malformed 2"])
def test_api1_a_place_in_anothers_list_is_like_one_that_never_was(street: Street, target: str) -> None:
    answer = street.http.list(f"next={street.nexts[target]}", user="user-1")
    assert answer == street.http.list("next=never", user="user-1")
    assert answer[0] == 400
    assert street.http.list(f"next={street.nexts['own']}", user="user-1")[0] == 200


@pytest.mark.parametrize("job_type", ["reconcile-payment", "no-such-job", "%00", "Capture-Payment", "capture-payment "])
def test_api5_a_job_type_that_is_not_open_is_like_one_that_never_was(street: Street, job_type: str) -> None:
    answer = street.http.post(payload("o"), job_type=job_type)
    assert answer == street.http.post(payload("o"), job_type="never-was")
    assert answer[0] == 404


@pytest.mark.parametrize("target", ["foreign", "expired", "absent"])
def test_api1_the_store_is_asked_the_same_for_what_is_anothers_and_for_what_is_absent(
    street: Street, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(street.house.database)
    house = House(PLENTY, database=asked)
    house.http.get(street.ids[target])
    house.http.delete(street.ids[target])
    assert asked.names == ["view", "cancel"]


NOBODY: dict[str, Any] = {
    "no authorizer": None,
    "an empty one": {},
    "no claims": {"jwt": {}},
    "no subject": {"jwt": {"claims": {"iss": "https://login.example.com"}}},
    "a blank subject": {"jwt": {"claims": {"sub": "  "}}},
    "a subject that is no text": {"jwt": {"claims": {"sub": ["user-1"]}}},
    "an authorizer of another kind": {"lambda": {"sub": "user-1"}},
    "an empty ARN": {"iam": {"userArn": ""}},
    "claims in another place": {"claims": {"sub": "user-1"}},
}


@pytest.mark.parametrize("who", NOBODY)
def test_api2_without_a_verified_identity_every_route_and_target_is_answered_alike_and_the_store_is_not_asked(
    street: Street, who: str
) -> None:
    asked = Asked(street.house.database)
    house = House(PLENTY, database=asked)
    answers: list[Answer] = []
    for route in ROUTES:
        for target in ("own", "foreign", "expired", "absent", "malformed 0"):
            path = route.path.replace("{operation_id}", street.ids[target]).replace("{job_type}", "capture-payment")
            answers.append(
                house.http.request(route.method, path, authorizer=NOBODY[who], body=json.dumps(payload("o")))
            )
    assert len(answers) == 5 * len(ROUTES)
    assert all(answer == answers[0] for answer in answers)
    assert (answers[0][0], answers[0][1]["code"]) == (401, "unauthenticated")
    assert asked.names == []


def test_api6_a_key_tells_nobody_whether_another_has_used_it(street: Street) -> None:
    mine = street.http.post(payload("mine"), key="own", user="user-3")
    fresh = street.http.post(payload("mine"), key="never-used", user="user-3")
    assert (mine[0], mine[2]["Idempotent-Replayed"]) == (fresh[0], fresh[2]["Idempotent-Replayed"]) == (202, "false")
    assert street.http.post(payload("other"), key="foreign", user="user-3")[0] == 202


ALLOWED = {"operation_id", "job_type", "status", "result", "error", "run_at", "progress"}


@pytest.mark.parametrize("status", Status)
def test_api3_nothing_leaves_the_house_but_what_is_listed(street: Street, status: Status) -> None:
    record = street.ids["own"].removeprefix("op_")
    secret = "CANARY"
    failure = Failure(START, "a-reason", f"Error: {secret}", secret, secret)
    full = replace(
        street.house.database.records[record],
        status=status,
        token=secret,
        fingerprint=secret,
        payload=secret,
        first_failure=failure,
        last_failure=failure,
        claim_until=START,
        not_before=START,
        attempts=7,
        checkpoint=f'{{"at":"{secret}"}}',
        checkpoints=3,
        progress=Progress(3, START, 9, "rows"),
        result='{"charge_id":"c"}',
    )
    street.house.database.records[record] = full
    code, body, headers = street.http.get(street.ids["own"])
    assert (code, body["status"]) == (200, OF_JOB[status])
    assert body == shown(operation_of(full, START))
    assert set(body) <= ALLOWED
    assert secret not in json.dumps([body, headers])


def test_api8_every_answer_has_the_security_headers_and_none_opens_it_to_other_origins(street: Street) -> None:
    origin = {"origin": "https://evil.example.com"}
    answers = [
        street.http.post(payload("new"), key="new"),
        street.http.post(payload("new"), key=None),
        street.http.get(street.ids["own"]),
        street.http.get(ABSENT),
        street.http.list(),
        street.http.list("no=1"),
        street.http.delete(street.ids["own"]),
        street.http.get(ABSENT, user=None),
        street.http.request("GET", "/elsewhere"),
        street.http.request("OPTIONS", "/operations", headers=origin),
    ]
    assert {status for status, _, _ in answers} == {202, 400, 200, 404, 401}
    for _, _, headers in answers:
        assert HEADERS.items() <= headers.items()
        assert not [name for name in headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_api4_a_body_that_is_nested_without_end_is_refused(street: Street, depth: int) -> None:
    for text in ('{"order_id":' + "[" * depth + "]" * depth + "}", '{"a":' * depth + "1" + "}" * depth):
        status, body, _ = street.http.post(text)
        assert status in {400, 413, 422}, body


@pytest.mark.parametrize("key", ["k\n", "k\x00", "ké", "k" * 256, " k", "k\r\nX: 1"])
def test_api4_a_key_that_is_no_short_printable_text_is_refused(street: Street, key: str) -> None:
    status, body, _ = street.http.post(payload("o"), key=key)
    assert (status, body["code"]) == (400, "invalid-idempotency-key")


def test_api3_a_fault_of_ours_tells_its_class_to_us_and_nothing_to_the_client(
    street: Street, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        message = "CANARY of the database"
        raise RuntimeError(message)

    monkeypatch.setattr(type(street.house.database), "view", broken)
    status, body, headers = street.http.get(street.ids["own"])
    assert (status, body["code"], headers["Content-Type"]) == (500, "broken", "application/problem+json")
    ((event, fields),) = street.house.telemetry.warnings
    assert (event, fields["error"]) == ("request_failed", "RuntimeError")
    assert "CANARY" not in json.dumps([body, headers, fields])
    assert street.house.counted("request_failed") == 1


class Held(MemoryRates):
    """Rates that let one owner's request wait until another's was answered."""

    def __init__(self) -> None:
        super().__init__(FakeClock())
        self.waits, self.answered = threading.Event(), threading.Event()

    def take(self, name: str, rate: Rate) -> timedelta:
        if not self.waits.is_set():
            self.waits.set()
            assert self.answered.wait(20)
        return timedelta(0)


def test_api1_of_two_requests_side_by_side_each_is_answered_as_its_own_owners() -> None:
    rates = Held()
    house = House(PLENTY, rates=rates)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(house.http.post, payload("first"), key="k", user="user-1")
        assert rates.waits.wait(20)
        assert house.http.post(payload("second"), key="k", user="user-2")[0] == 202
        rates.answered.set()
        assert first.result()[0] == 202
    owners = {view.names["owner"].rpartition(":")[2]: view.payload for view in house.database.records.values()}
    assert {owner: json.loads(text or "")["order_id"] for owner, text in owners.items()} == {
        "user-1": "first",
        "user-2": "second",
    }
