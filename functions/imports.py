"""Importing files of products: a file of any size is split into parts, each written row by row, and what is refused is reported.

A part that dies goes on behind its last batch. Rows are visible as they are written, under the name of the splitting and the part's
number; the report names the lines that were refused, and why.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from functions.import_rows import Format, columns_of, product_of, rows_of
from shared.consumer import consume
from shared.errors import DeadLetter
from shared.files import Changed, Folder
from shared.job import job
from shared.payload import Payload
from shared.retry import Retry
from shared.strict_json import json_text
from shared.table import Table
from shared.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from functions.import_rows import Row
    from shared.unit_of_work import UnitOfWork

UPLOADS = Folder("imports", "uploads")
REPORTS = Folder("imports", "reports")
ROWS = Table("import-rows", key="part", sort_key="line")
ROWS_IN_PART = 1000
ROWS_AT_ONCE = 98  # with the job record they fit into one transaction
REPORTS_AT_ONCE = 8  # of parts, each of some hundred bytes for every row that was refused
FORMATS = {"csv": Format.CSV, "jsonl": Format.JSON_LINES, "ndjson": Format.JSON_LINES}

Source = Annotated[str, Field(min_length=1, max_length=500)]


class ImportData(Payload):
    """Import a file of the folder `uploads`: CSV with a header, or JSON Lines, as its name's ending says."""

    source: Source


class ImportPart(Payload):
    """Import the rows of one range of a file."""

    split: str
    number: int
    source: Source
    tag: str
    file_format: Format
    columns: tuple[str, ...] | None
    start: int
    end: int
    line: int


class PartImported(BaseModel):
    """What became of a part's rows."""

    rows: int
    written: int
    refused: int


class DataImported(BaseModel):
    """What became of a file's rows, as far as their parts ended well; `report` names the refused lines, where there are any."""

    rows: int
    written: int
    refused: int
    parts: int
    failed_parts: int
    report: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """How far a file is split: the state of the splitting's checkpoints."""

    tag: str
    size: int
    end: int = 0
    line: int = 1
    columns: tuple[str, ...] | None = None

    @classmethod
    def read(cls, state: Mapping[str, Any]) -> Place:
        """The place of a checkpoint."""
        columns = state["columns"]
        return cls(**{**state, "columns": None if columns is None else tuple(columns)})

    @property
    def written(self) -> dict[str, Any]:
        """As a checkpoint's state."""
        return asdict(self)


@job(
    "import-part",
    timeout=timedelta(minutes=2),  # a thousand rows are a dozen transactions
    max_latency=timedelta(hours=1),
    heartbeat=timedelta(seconds=10),
    retry=Retry(max_attempts=8, base=timedelta(seconds=5), cap=timedelta(minutes=5)),
    uses=(ROWS.read_write, UPLOADS.read, REPORTS.read_write),
)
def import_part(payload: ImportPart, work: UnitOfWork) -> PartImported:
    """Write the rows of a range, a batch at a time; all are read again after a crash, and those behind the last batch written."""
    done = payload.start if work.last_checkpoint is None else work.last_checkpoint["end"]
    refused: list[str] = []
    rows = staged = 0
    chunks = work.files.chunks(UPLOADS, payload.source, payload.tag, payload.start, payload.end)
    for row in _unchanged(rows_of(chunks, payload.file_format, start=payload.start, line=payload.line)):
        rows += 1
        product = product_of(row, payload.columns)
        if isinstance(product, str):
            refused.append(json_text({"line": row.line, "reason": product}))
        elif row.start >= done:
            place = {"part": f"{payload.split}/{payload.number:06}", "line": f"{row.line:010}"}
            work.create(ROWS, **place, **product.model_dump())
            staged += 1
            if staged == ROWS_AT_ONCE:
                work.progress(rows, note="rows")
                work.checkpoint({"end": row.end})
                staged = 0
    if refused:
        work.files.write(REPORTS, _part_report(payload.split, payload.number), [f"{r}\n".encode() for r in refused])
    return PartImported(rows=rows, written=rows - len(refused), refused=len(refused))


@job(
    "import-data",
    timeout=timedelta(minutes=5),  # of one attempt: a file that takes longer is split in several
    max_latency=timedelta(hours=2),
    heartbeat=timedelta(seconds=10),
    retry=Retry(max_attempts=8, base=timedelta(seconds=5), cap=timedelta(minutes=5)),
    lock=lambda payload: f"import/{payload.source}",
    uses=(UPLOADS.read, REPORTS.read_write),
    parts=(import_part,),
)
def import_data(payload: ImportData, work: UnitOfWork) -> DataImported:
    """Split the file at its rows, wait for the parts, and put their reports together."""
    last = work.last_checkpoint
    place = _begin(payload.source, work) if last is None else Place.read(last)
    if last is None or place.end < place.size:
        _split(payload.source, place, work)
    tally = work.await_parts()
    rows = written = refused = 0
    with_refused: list[int] = []
    for part in work.part_results():
        if part.result is None:
            continue
        rows, written = rows + part.result["rows"], written + part.result["written"]
        if part.result["refused"]:
            refused += part.result["refused"]
            with_refused.append(part.number)
    report = None
    if with_refused:
        report = f"{work.operation_id}/{work.split_name}.jsonl"
        work.files.write(REPORTS, report, _reports(sorted(with_refused), work))
    work.progress(rows, rows, "rows")
    return DataImported(
        rows=rows,
        written=written,
        refused=refused,
        parts=tally.total,
        failed_parts=tally.total - tally.succeeded,
        report=None if report is None else REPORTS.key(report),
    )


def _begin(source: str, work: UnitOfWork) -> Place:
    """The beginning of a file: behind the header of CSV.

    Raises:
        DeadLetter: there is no such file, or it is of no known format, or has other columns.
    """
    file_format = _format(source)
    file = work.files.look(UPLOADS, source)
    if file is None:
        reason = "unknown-source"
        raise DeadLetter(reason)
    place = Place(file.tag, file.size)
    if file_format is not Format.CSV:
        return place
    first = next(_rows(source, place, work), None)
    columns = None if first is None else columns_of(first)
    if first is None or columns is None:
        reason = "wrong-columns"
        raise DeadLetter(reason, "the first row names the columns: sku, name, price, stock, in any order")
    return replace(place, end=first.end, line=first.line + first.lines, columns=columns)


def _split(source: str, place: Place, work: UnitOfWork) -> None:
    """Split what is behind a place into parts of a thousand rows, and take a checkpoint wherever no more fit into one."""
    for first, last in _groups(_rows(source, place, work)):
        part = ImportPart(
            split=work.split_name,
            number=work.parts_split,
            source=source,
            tag=place.tag,
            file_format=_format(source),
            columns=place.columns,
            start=first.start,
            end=last.end,
            line=first.line,
        )
        work.split(import_part, part)
        work.progress(last.end, place.size, "bytes split")
        if not work.room_for_parts:
            work.checkpoint(replace(place, end=last.end, line=last.line + last.lines).written)
    work.checkpoint(replace(place, end=place.size).written)


def _groups(rows: Iterator[Row]) -> Iterator[tuple[Row, Row]]:
    """The first and the last row of each part."""
    for first in rows:
        last = first
        for last in islice(rows, ROWS_IN_PART - 1):  # noqa: B007 - the last one is what is asked for
            pass
        yield first, last


def _rows(source: str, place: Place, work: UnitOfWork) -> Iterator[Row]:
    chunks = work.files.chunks(UPLOADS, source, place.tag, place.end, place.size)
    return _unchanged(rows_of(chunks, _format(source), start=place.end, line=place.line))


def _unchanged(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows, as long as the file is as it was.

    Raises:
        DeadLetter: it is not.
    """
    try:
        yield from rows
    except Changed as error:
        reason = "source-changed"
        raise DeadLetter(reason, "the file was written anew meanwhile: import it under another key") from error


def _format(source: str) -> Format:
    found = FORMATS.get(source.rpartition(".")[2].lower())
    if found is None:
        reason = "unknown-format"
        raise DeadLetter(reason, "a file's name ends in .csv, .jsonl or .ndjson")
    return found


def _part_report(split: str, number: int) -> str:
    return f"parts/{split}/{number:06}.jsonl"


def _reports(numbers: Iterable[int], work: UnitOfWork) -> Iterator[bytes]:
    """The parts' reports, one behind the other; some are fetched side by side, since each is small."""

    def fetched(number: int) -> bytes:
        name = _part_report(work.split_name, number)
        file = work.files.look(REPORTS, name)
        return b"" if file is None else b"".join(work.files.chunks(REPORTS, name, file.tag, 0, file.size))

    left = iter(numbers)
    with ThreadPoolExecutor(REPORTS_AT_ONCE) as pool:
        while some := list(islice(left, 2 * REPORTS_AT_ONCE)):
            yield from pool.map(fetched, some)


# Each part writes as fast as a partition of the table takes it, and each is its own: ten at a time trouble nobody.
WORKER = Worker("imports", jobs=(import_data, import_part), batch_size=5, max_concurrency=10)
handler = consume(WORKER)
