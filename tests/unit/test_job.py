"""Declaring jobs: what is wrong is refused when the module is imported, with the repair."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from shared.dependency import Dependency
from shared.errors import DeclarationError
from shared.job import JobTypes, job
from shared.payload import Payload
from shared.retry import Retry
from shared.table import Table
from tests.unit.times import TIMES
from tests.world import THINGS, Note, note_job


class Line(BaseModel):
    """A nested model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    amount: Decimal


class Lines(Payload):
    """A payload with nested models."""

    lines: tuple[Line, ...]
    note: str | None = None


class Weight(Payload):
    """A payload that DynamoDB could not keep exactly."""

    weights: list[float | None]


class Made(Payload):
    """A payload that is another one at each delivery."""

    made: str = Field(default_factory=str)


class Tagged(Payload):
    """A payload without an order."""

    tags: frozenset[str]


class Anything(Payload):
    """A payload that says nothing."""

    values: dict[str, Any]


class Loose(Payload):
    """A payload that takes anything."""

    model_config = ConfigDict(extra="allow")


def lines(payload: Lines, work: Any) -> str:
    return str(len(payload.lines))


def test_a_declared_job_is_still_a_function() -> None:
    declared = job("lines", **TIMES)(lines)
    assert declared(Lines(lines=()), None) == "0"  # type: ignore[arg-type]
    assert declared.payload is Lines


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"timeout": timedelta(0)}, "more than 0"),
        ({"timeout": timedelta(minutes=16), "max_latency": timedelta(hours=1)}, "split longer work"),
        ({"max_latency": timedelta(seconds=10)}, "below timeout"),
        ({"version": 0}, "1 or more"),
        ({"lease": timedelta(milliseconds=10)}, "at least 1 second"),
        ({"uses": (Dependency("slow", timeout=timedelta(seconds=30)),)}, "lower the first or raise the second"),
        ({"uses": (THINGS.read, THINGS.read_write)}, "keep the wider right"),
    ],
    ids=str,
)
def test_wrong_options_are_refused_with_the_repair(change: dict[str, Any], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        job("lines", **{**TIMES, **change})(lines)


@pytest.mark.parametrize("name", ["Capture", "capture_payment", "", "a b", "x" * 3 + "-", "x" * 61])
def test_names_are_lower_case_words(name: str) -> None:
    with pytest.raises(DeclarationError, match="lower case words"):
        job(name, **TIMES)(lines)


def test_a_handler_takes_its_payload_and_the_unit_of_work() -> None:
    def no_payload(work: Any) -> None: ...

    def other(payload: int, work: Any) -> None: ...

    with pytest.raises(DeclarationError, match=r"takes \(payload, work\)"):
        job("x", **TIMES)(no_payload)  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="subclass of Payload"):
        job("x", **TIMES)(other)  # type: ignore[type-var]


def test_pay_09_a_float_in_a_payload_is_refused_at_declaration() -> None:
    def handler(payload: Weight, work: Any) -> None: ...

    with pytest.raises(DeclarationError, match="use Decimal"):
        job("x", **TIMES)(handler)


@pytest.mark.parametrize(
    ("payload", "says"), [(Made, "default_factory"), (Tagged, "use a tuple"), (Anything, "say what it is")]
)
def test_a_payload_whose_fingerprint_would_not_be_stable_is_refused(payload: type[Payload], says: str) -> None:
    def handler(payload: Note, work: Any) -> None: ...

    handler.__annotations__["payload"] = payload
    with pytest.raises(DeclarationError, match=says):
        job("x", **TIMES)(handler)


def test_an_async_handler_is_refused() -> None:
    async def handler(payload: Note, work: Any) -> None: ...

    with pytest.raises(DeclarationError, match="plain `def`"):
        job("x", **TIMES)(handler)


def test_a_payload_that_takes_unknown_fields_is_refused() -> None:
    def handler(payload: Loose, work: Any) -> None: ...

    with pytest.raises(DeclarationError, match="without extra fields"):
        job("x", **TIMES)(handler)


def test_a_name_stands_for_one_job() -> None:
    with pytest.raises(DeclarationError, match="declared twice"):
        JobTypes.of(note_job(), note_job())


@pytest.mark.parametrize(
    "options",
    [
        {"max_attempts": 0},
        {"base": timedelta(0)},
        {"base": timedelta(hours=1), "cap": timedelta(minutes=1)},
        {"cap": timedelta(hours=13)},
        {"unknown_attempts": 0},
    ],
    ids=str,
)
def test_a_retry_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        Retry(**options)


@pytest.mark.parametrize(("name", "key"), [("Orders", "id"), ("orders", "version"), ("orders", "ttl")])
def test_a_table_that_infra_could_not_make_is_refused(name: str, key: str) -> None:
    with pytest.raises(DeclarationError):
        Table(name, key=key)


@pytest.mark.parametrize("options", [{"timeout": timedelta(0)}, {"connect": timedelta(minutes=1)}], ids=str)
def test_a_dependency_without_a_sane_timeout_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        Dependency("shop", **options)


def test_pace_shortens_every_duration() -> None:
    declared = note_job(lease=timedelta(seconds=30)).at_pace(0.1)
    assert (declared.timeout, declared.lease) == (timedelta(seconds=1), timedelta(seconds=3))
    assert declared.retry.base == timedelta(seconds=1)
    assert declared.message(Note(thing="a"), key="k").job_type == "note"


def test_pace_leaves_a_connection_its_time_but_no_more_than_the_call_has() -> None:
    shop = Dependency("shop", timeout=timedelta(seconds=5), connect=timedelta(seconds=1))
    assert shop.at_pace(0.5).connect == timedelta(seconds=1)
    assert shop.at_pace(0.1) == Dependency("shop", timedelta(milliseconds=500), timedelta(milliseconds=500))


def test_a_beating_jobs_lease_lasts_three_beats_and_both_follow_the_pace() -> None:
    beating = note_job(heartbeat=timedelta(seconds=5))
    assert beating.lease == timedelta(seconds=15)
    assert note_job().lease == timedelta(seconds=30)
    assert note_job(heartbeat=timedelta(seconds=5), lease=timedelta(seconds=40)).lease == timedelta(seconds=40)
    paced = beating.at_pace(0.2)
    assert (paced.heartbeat, paced.lease, paced.timeout) == (
        timedelta(seconds=1),
        timedelta(seconds=3),
        timedelta(seconds=2),
    )
