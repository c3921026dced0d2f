"""Rows of a file, whatever its size: where each begins and ends, and what it says. Memory holds one row and one chunk.

A row of CSV may hold line breaks within quotes. A quote that nobody closes must not swallow the file, nor one that opens nothing,
as an inch mark: a line that is a row by itself is one, and what has no end within the longest row, or makes no row with what is
between, is refused as one line; the next line is a row again. So a range that begins and ends with rows has the
same rows whether it is read alone or within the file.
"""

from __future__ import annotations

import csv
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.payload import describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LONGEST_ROW = 64 * 1024  # bytes
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
QUOTE = b'"'


class Format(StrEnum):
    """How a file's rows are written."""

    CSV = "csv"
    JSON_LINES = "jsonl"


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it stands in its file.

    Attributes:
        line: of its beginning, from 1 on.
        start: its first byte's place in the file, and `end` that behind its last, line break included.
        lines: how many it takes.
        text: without the line break; None if the row has no end within the longest row.
    """

    line: int
    start: int
    end: int
    lines: int
    text: bytes | None


@dataclass(frozen=True, slots=True)
class _Line:
    """A physical line: its size in bytes, and what of it is kept."""

    size: int
    kept: bytes

    @property
    def is_too_long(self) -> bool:
        return self.size > LONGEST_ROW


class Product(BaseModel):
    """What a row says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sku: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,40}$")]
    name: Annotated[str, Field(min_length=1, max_length=200)]
    price: Annotated[Decimal, Field(ge=0, max_digits=12, decimal_places=2)]
    stock: Annotated[int, Field(ge=0, le=1_000_000_000)]


COLUMNS = tuple(Product.model_fields)


def rows_of(chunks: Iterable[bytes], file_format: Format, *, start: int = 0, line: int = 1) -> Iterator[Row]:
    """The rows of a range of a file, blank ones left out.

    Args:
        chunks: the bytes of the range, in order.
        file_format: of the file.
        start: where the range begins in the file, which is where a row does.
        line: of its beginning.
    """
    source = _lines(chunks)
    waiting: deque[_Line] = deque()
    while True:
        first = waiting.popleft() if waiting else next(source, None)
        if first is None:
            return
        taken, text = 1, _text_of(first)
        if text is not None and file_format is Format.CSV and text.count(QUOTE) % 2 and _fields(text) is None:
            taken, text = _until_closed(first, waiting, source)
        lines = [first, *(waiting.popleft() for _ in range(taken - 1))]
        end = start + sum(each.size for each in lines)
        if text is None or text.strip():
            yield Row(line, start, end, taken, text)
        start, line = end, line + taken


def _until_closed(first: _Line, waiting: deque[_Line], source: Iterator[_Line]) -> tuple[int, bytes | None]:
    """How many lines the row has that begins with an open quote, and its text; one line without a text if it has no end."""
    weight, quotes, taken = first.size, first.kept.count(QUOTE), 1
    while weight <= LONGEST_ROW:
        if taken > len(waiting):
            following = next(source, None)
            if following is None:
                break
            waiting.append(following)
        line = waiting[taken - 1]
        weight, quotes, taken = weight + line.size, quotes + line.kept.count(QUOTE), taken + 1
        if weight <= LONGEST_ROW and quotes % 2 == 0:
            whole = [first, *(waiting[place] for place in range(taken - 1))]
            joined = b"".join(each.kept for each in whole).rstrip(b"\r\n")
            return (taken, joined) if _fields(joined) is not None else (1, None)
    return 1, None


def _text_of(line: _Line) -> bytes | None:
    return None if line.is_too_long else line.kept.rstrip(b"\r\n")


def _lines(chunks: Iterable[bytes]) -> Iterator[_Line]:
    """Physical lines; of one that is too long only its beginning is kept."""
    rest, dropped = b"", 0
    for chunk in chunks:
        *whole, rest_of_chunk = chunk.split(b"\n")
        for text in whole:
            kept = rest + text + b"\n"
            yield _Line(len(kept) + dropped, kept[: LONGEST_ROW + 1])
            rest, dropped = b"", 0
        rest += rest_of_chunk
        if len(rest) > LONGEST_ROW:
            dropped, rest = dropped + len(rest) - LONGEST_ROW, rest[:LONGEST_ROW]
    if rest:
        yield _Line(len(rest) + dropped, rest)


def columns_of(row: Row) -> tuple[str, ...] | None:
    """The columns that the first row of a CSV file names; None if they are not those of a product."""
    if row.text is None:
        return None
    names = _fields(row.text.removeprefix(BYTE_ORDER_MARK))
    return tuple(names) if names is not None and sorted(names) == sorted(COLUMNS) else None


def product_of(row: Row, columns: Sequence[str] | None) -> Product | str:
    """What a row says, or why it is refused, without any of its values.

    Args:
        row: of a file.
        columns: of a CSV file; None for JSON Lines.
    """
    if row.text is None:
        return f"row: longer_than_{LONGEST_ROW}_bytes_or_without_end"
    try:
        if columns is None:
            return Product.model_validate_json(row.text.removeprefix(BYTE_ORDER_MARK))
        fields = _fields(row.text)
        if fields is None:
            return "row: no_csv"
        if len(fields) != len(columns):
            return f"row: {len(fields)}_fields_for_{len(columns)}_columns"
        return Product.model_validate(dict(zip(columns, fields, strict=True)))
    except ValidationError as error:
        return describe(error)


def _fields(text: bytes) -> list[str] | None:
    try:
        rows = list(csv.reader([text.decode()], strict=True))
    except (UnicodeDecodeError, csv.Error):
        return None
    return rows[0] if len(rows) == 1 else None
