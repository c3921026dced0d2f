"""Files in the hands of a handler: only those of declared folders, under names that stay there, and nothing once it is to stop."""

from __future__ import annotations

from typing import Any

import pytest

from shared.backends.memory.files import MemoryFiles
from shared.errors import DeclarationError, Refused, Stopping
from shared.files import CHUNK, Changed, File, Files, Folder
from shared.outcome import Because, Completed, Postponed
from tests.world import Note, World, body

UPLOADS, REPORTS = Folder("imports", "uploads"), Folder("imports", "reports")


def files(*, stop_at: int = 0) -> tuple[Files, MemoryFiles]:
    store, checks = MemoryFiles(), [0]

    def check() -> None:
        checks[0] += 1
        if checks[0] == stop_at:
            raise Stopping

    return Files(store, (UPLOADS.read, REPORTS.read_write), check), store


def test_a_file_is_looked_at_read_and_written() -> None:
    reached, store = files()
    store.files["imports", "uploads/a/b.csv"] = b"x" * (CHUNK + 5)
    file = reached.look(UPLOADS, "a/b.csv")
    assert file is not None
    assert file.size == CHUNK + 5
    chunks = list(reached.chunks(UPLOADS, "a/b.csv", file.tag, 3, file.size))
    assert [len(chunk) for chunk in chunks] == [CHUNK, 2]
    reached.write(REPORTS, "r.jsonl", [b"1", b"2"])
    assert store.files["imports", "reports/r.jsonl"] == b"12"
    assert reached.look(UPLOADS, "absent") is None


def test_another_version_is_told() -> None:
    reached, store = files()
    store.files["imports", "uploads/a"] = b"1234"
    with pytest.raises(Changed, match="has changed since it was first read"):
        list(reached.chunks(UPLOADS, "a", "another", 0, 4))


def test_what_is_not_declared_is_not_reached() -> None:
    reached, _ = files()
    with pytest.raises(
        DeclarationError, match=r"uses folder 'uploads' of 'imports' \(read-write\) without declaring it"
    ):
        reached.write(UPLOADS, "a", [])
    for folder in (Folder("imports", "other"), Folder("other", "uploads")):
        with pytest.raises(DeclarationError, match="without declaring it"):
            reached.look(folder, "a")
    with pytest.raises(DeclarationError, match="without declaring it"):
        Files(None, (UPLOADS.read,), lambda: None).look(UPLOADS, "a")


@pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", "..", "a/../../reports/b", "./a", "a\nb", "x" * 1020])
def test_a_name_that_leads_elsewhere_is_no_name(name: str) -> None:
    reached, _ = files()
    with pytest.raises(Refused, match="cannot be called"):
        reached.look(UPLOADS, name)


def test_whoever_is_to_stop_reads_and_writes_no_further() -> None:
    reached, store = files(stop_at=2)
    store.files["imports", "uploads/a"] = b"x" * (3 * CHUNK)
    file = reached.look(UPLOADS, "a")
    assert isinstance(file, File)
    chunks = reached.chunks(UPLOADS, "a", file.tag, 0, file.size)
    assert len(next(chunks)) == CHUNK
    with pytest.raises(Stopping):
        next(chunks)
    other, written = files(stop_at=1)
    with pytest.raises(Stopping):
        other.write(REPORTS, "r", [b"1"])
    assert written.files == {}


def test_a_job_reaches_the_files_that_it_declares() -> None:
    def handler(payload: Note, work: Any) -> object:
        work.files.write(REPORTS, f"{work.operation_id}.txt", [b"done"])
        if stops:
            work.stopping.set()
            work.files.write(REPORTS, "never.txt", [b""])
        return None

    stops: list[bool] = []
    world = World.of(handler, uses=(REPORTS.read_write,))
    assert world.execute(body()) == Completed(1)
    ((_, key),) = world.files.files
    assert key.startswith("reports/op_")
    stops.append(True)
    outcome = world.execute(body(idempotency_key="other"))
    assert isinstance(outcome, Postponed)
    assert outcome.because is Because.STOPPING
    assert len(world.files.files) == 2
