"""`tahan new worker`: what it refuses, what it would write; `tests/tutorial` shows that a worker it wrote is green."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from infra.stage.settings import ROOT
from ops.exits import CommandError, Exit
from ops.new.files import REGISTRY, UNPLAYED, Names, changed, written
from ops.new.worker import WRITERS, Plan, write
from tests.ops.desk import Desk

NAMES = Names("parcels", "weigh-parcel")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("Parcels",), "use lower case words"),
        (("parcels_new",), "use lower case words"),
        (("x" * 41,), "shorten it"),
        (("parcels-dead-letters",), "like a dead-letter queue"),
        (("import",), "Python's own"),
        (("list",), "Python's own"),
        (("users",), "users"),
        (("orders",), "declared by worker 'payments'"),
        (("front-door",), "functions/front_door.py is there already"),
        (("weigh-parcel", "--job", "weigh-parcel"), "would name two things"),
        (("worker",), "would name two things"),
        (("json",), "would name two things"),
        (("parcels", "--job", "new-stack"), "would name two things"),
        (("parcels", "--job", "capture-payment"), "declared by worker 'payments'"),
        (("parcels", "--job", "weigh"), "call it by what it does"),
        (("parcels", "--job", "unit-of-work"), "call it by what it does"),
        (("parcels", "--job", "weigh-" + "x" * 60), "60 characters"),
    ],
)
def test_a_name_that_is_wrong_or_taken_is_refused_with_what_to_do(words: tuple[str, ...], told: str) -> None:
    desk = Desk()
    assert desk.run("new", "worker", *words, "--dry-run") == Exit.REFUSED
    assert told in desk.err
    assert "Nothing was written" in desk.err


def test_a_dry_run_says_all_that_would_be_written_and_writes_nothing() -> None:
    desk = Desk()
    assert desk.run("new", "worker", "parcels", "--job", "weigh-parcel", "--dry-run", "--json") == Exit.DONE
    assert desk.json["written"] is False
    assert desk.json["new"] == sorted(written(NAMES))
    assert REGISTRY in desk.json["changed"]
    assert len(desk.json["then_run"]) == len(WRITERS)
    assert not (ROOT / "functions" / "parcels.py").exists()


def test_what_was_written_before_a_file_that_cannot_be_is_named_with_how_it_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.new.worker.ROOT", tmp_path)
    (tmp_path / "there").mkdir()
    plan = Plan({"new/a.py": "a\n", "new/b.py": "b\n"}, {"lines.py": "c\n", "there": "no file\n"})
    with pytest.raises(CommandError) as refused:
        write(plan, lambda _: None)
    told = str(refused.value)
    assert told.startswith("there cannot be written (IsADirectoryError).")
    assert "Written before it: new/a.py, new/b.py, lines.py." in told
    assert "To undo that: rm new/a.py new/b.py; and take the worker's lines out of lines.py" in told
    assert not list(tmp_path.rglob("*.new"))
    with pytest.raises(CommandError, match="Nothing was written"):
        write(Plan({"there": "no file\n"}, {}), lambda _: None)


def test_a_file_that_is_not_as_it_is_known_is_refused_and_named() -> None:
    def read(file: str) -> str:
        return "WORKERS = []\n" if file == REGISTRY else (ROOT / file).read_text(encoding="utf-8")

    with pytest.raises(Exception, match=r"functions/registry\.py is not as this command knows it"):
        changed(NAMES, read)


def test_the_lines_are_added_in_their_place_and_nothing_else_changes() -> None:
    for file, text in changed(NAMES, lambda file: (ROOT / file).read_text(encoding="utf-8")).items():
        before, after = (ROOT / file).read_text(encoding="utf-8").splitlines(), text.splitlines()
        assert "parcels" in "\n".join(line for line in after if line not in before), file
        assert len([line for line in before if line not in after]) <= 1, file


def test_worker_after_worker_can_be_added_also_where_the_formatter_has_broken_lines() -> None:
    files: dict[str, str] = {}

    def read(file: str) -> str:
        return files.get(file) or (ROOT / file).read_text(encoding="utf-8")

    for number in range(5):
        files |= changed(Names(f"parcel-labels-of-region-{number}", f"weigh-parcel-{number}"), read)
        for file in (name for name in files if name.endswith(".py")):
            ruff = str(Path(sys.executable).with_name("ruff"))
            command = [ruff, "format", "--quiet", "--stdin-filename", file, "-"]
            formatted = subprocess.run(command, input=files[file], capture_output=True, text=True, check=True)  # noqa: S603 - ours
            files[file] = formatted.stdout
    assert files[REGISTRY].count("parcel_labels_of_region_") == 10
    assert files[UNPLAYED].count('"parcel-labels-of-region-') == 5
