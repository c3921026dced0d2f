"""The contract of payloads: no change of the code breaks a message in flight; and the check itself, on planted changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, create_model

from functions.registry import WORKERS
from shared.job import job
from shared.payload import Payload
from tests.contracts.golden import Golden, broken, read_all, release
from tests.contracts.schema import schema_of
from tests.unit.times import TIMES

if TYPE_CHECKING:
    from pathlib import Path

    from shared.job import Job

JOBS = [job for worker in WORKERS for job in worker.jobs]


def test_i46_no_payload_has_changed_so_that_a_message_in_flight_would_break() -> None:
    problems = list(broken(JOBS, read_all()))
    assert problems == [], "\n\n".join(problems)


def test_every_released_version_has_messages() -> None:
    assert [golden.name for golden in read_all().values() if not golden.messages] == []


class Inner(BaseModel):
    """A model in a payload."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    amount: Annotated[int, Field(ge=0)] = 0


FIELDS: dict[str, Any] = {
    "order_id": (Annotated[str, Field(min_length=1, max_length=200)], ...),
    "kind": (Literal["a", "b"], "a"),
    "count": (int, 3),
    "inner": (Inner | None, None),
}
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "a field is removed": ({"count": None}, "properties.count"),
    "an optional field is added": ({"note": (str, "")}, "properties.note"),
    "a required field is added": ({"note": (str, ...)}, "properties.note"),
    "a type is narrowed": ({"kind": (Literal["a"], "a")}, "properties.kind"),
    "a type is widened": ({"count": (int | None, 3)}, "properties.count"),
    "a bound is tightened": ({"order_id": (Annotated[str, Field(min_length=1, max_length=100)], ...)}, "maxLength"),
    "a bound is loosened": ({"order_id": (Annotated[str, Field(min_length=1)], ...)}, "maxLength"),
    "a default has changed": ({"count": (int, 4)}, "properties.count.default"),
    "a default is taken away": ({"count": (int, ...)}, "required"),
    "a field is renamed": ({"count": None, "number": (int, 3)}, "properties.number"),
    "an inner field is another": (
        {"inner": (create_model("Inner", __base__=Inner, amount=(int, 0)) | None, None)},
        "inner",
    ),
}


def declared(changes: dict[str, Any] | None = None, *, base: type[Payload] = Payload, **options: Any) -> Job[Any, Any]:
    fields = {name: given for name, given in {**FIELDS, **(changes or {})}.items() if given is not None}
    model: Any = create_model("Asked", __base__=base, **fields)

    def handler(payload: Any, work: Any) -> None:
        """Do nothing."""

    handler.__annotations__["payload"] = model
    return job("planted", **TIMES, **options)(handler)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Version 1 of the planted job, released."""
    assert release([declared()], tmp_path) == ["planted.v1.json"]
    return tmp_path


def test_what_is_released_is_fine_as_long_as_it_stays(folder: Path) -> None:
    assert list(broken([declared()], read_all(folder))) == []


@pytest.mark.parametrize("change", CHANGES)
def test_i46_a_changed_payload_fails_with_what_to_do(folder: Path, change: str) -> None:
    changes, where = CHANGES[change]
    (problem,) = broken([declared(changes)], read_all(folder))
    assert where in problem.partition("\n")[0]
    assert "version=2 and upgrades={1: ...}" in problem
    assert "make contract" in problem


@pytest.mark.parametrize("change", CHANGES)
def test_a_released_version_is_never_written_over(folder: Path, change: str) -> None:
    before = (folder / "planted.v1.json").read_text()
    assert release([declared(CHANGES[change][0])], folder) == []
    assert (folder / "planted.v1.json").read_text() == before


def renamed(payload: dict[str, Any]) -> dict[str, Any]:
    return {("number" if name == "count" else name): value for name, value in payload.items()}


def test_a_new_version_with_its_upgrade_is_released_beside_the_old_one(folder: Path) -> None:
    new = declared({"count": None, "number": (int, 3)}, version=2, upgrades={1: renamed})
    assert any("not released: run `make contract`" in problem for problem in broken([new], read_all(folder)))
    old = read_all(folder)["planted", 1]
    assert release([new], folder) == ["planted.v2.json"]
    assert list(broken([new], read_all(folder))) == []
    kept = read_all(folder)["planted", 1]
    assert (kept.schema, [sent for sent, _ in kept.messages]) == (old.schema, [sent for sent, _ in old.messages])
    assert all("number" in becomes and "count" not in becomes for _, becomes in kept.messages)


def test_an_upgrade_that_gives_something_else_than_it_did_is_found(folder: Path) -> None:
    new = declared({"count": None, "number": (int, 3)}, version=2, upgrades={1: renamed})
    release([new], folder)
    other = declared(
        {"count": None, "number": (int, 3)}, version=2, upgrades={1: lambda payload: {"order_id": payload["order_id"]}}
    )
    (problem,) = broken([other], read_all(folder))
    assert "mend upgrades[1]" in problem


def test_a_rule_that_no_schema_shows_is_found_by_a_message(folder: Path) -> None:
    class Stricter(Payload):
        """Refuses what version 1 took."""

        def model_post_init(self, context: object) -> None:
            """Refuse everything."""
            message = "no"
            raise ValueError(message)

    problems = list(broken([declared(base=Stricter)], read_all(folder)))
    assert problems
    assert all("is refused now" in problem for problem in problems)


def test_a_version_that_is_read_no_more_is_refused_until_it_is_retired(folder: Path) -> None:
    new = declared({"count": None}, version=2)
    release([new], folder)
    (problem,) = broken([new], read_all(folder))
    assert "upgrades[1] back" in problem
    old = read_all(folder)["planted", 1]
    Golden(old.job_type, old.version, old.schema, old.messages, "none since March").write(folder)
    assert list(broken([new], read_all(folder))) == []


def test_a_job_type_that_is_gone_is_refused_until_it_is_retired(folder: Path) -> None:
    (problem,) = broken([], read_all(folder))
    assert "the job type is gone" in problem
    old = read_all(folder)["planted", 1]
    Golden(old.job_type, old.version, old.schema, old.messages, "replaced").write(folder)
    assert list(broken([], read_all(folder))) == []


def test_a_file_that_an_upgrade_rests_on_is_not_deleted(folder: Path) -> None:
    new = declared({"count": None, "number": (int, 3)}, version=2, upgrades={1: renamed})
    release([new], folder)
    (folder / "planted.v1.json").unlink()
    (problem,) = broken([new], read_all(folder))
    assert "planted.v1.json is missing" in problem


def test_names_words_and_order_are_no_part_of_a_schema() -> None:
    class Same(BaseModel):
        """Called otherwise."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        amount: Annotated[int, Field(ge=0, description="how much")] = 0

    fields = dict(reversed([*FIELDS.items(), ("inner", (Same | None, None))]))
    model: Any = create_model("Other", __base__=Payload, **fields)
    assert schema_of(model) == schema_of(declared().payload)


def test_a_field_may_be_called_title() -> None:
    model: Any = create_model("Book", __base__=Payload, title=(str, ...), description=(str, ""))
    assert set(schema_of(model)["properties"]) == {"title", "description"}
