"""The short form of benchmarks/import_memory.py: what a file needs of memory does not grow with it."""

from __future__ import annotations

import tracemalloc
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from functions.import_rows import LONGEST_ROW, Format, product_of, rows_of
from shared.files import CHUNK
from tests.functions.imports_case import rows

if TYPE_CHECKING:
    from collections.abc import Iterator

# The longest chunk, what it is split into, and what is left of the one before.
MOST = 8 * CHUNK
COLUMNS = ("sku", "name", "price", "stock")


def file_of(thousands: int) -> Iterator[bytes]:
    many = rows(5000).encode()
    return (many for _ in range(thousands // 5))


def peak(chunks: Iterator[bytes], file_format: Format = Format.CSV) -> tuple[int, int]:
    tracemalloc.start()
    try:
        count = sum(product_of(row, COLUMNS) is not None for row in rows_of(chunks, file_format))
        return count, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("thousands", [25, 150])
def test_a_file_of_any_size_takes_the_memory_of_a_few_chunks(thousands: int) -> None:
    count, most = peak(file_of(thousands))
    assert count == thousands * 1000
    assert most < MOST


@pytest.mark.parametrize("file_format", Format)
def test_a_line_without_end_takes_no_more(file_format: Format) -> None:
    endless = (b'"' + b"x" * (CHUNK - 1) for _ in range(40))
    count, most = peak(endless, file_format)
    assert count == 1
    assert most < MOST + LONGEST_ROW


def test_a_quote_that_nobody_closes_takes_no_more() -> None:
    count, most = peak(chain([b'sku,"open\n'], file_of(150)))
    assert count == 150_001
    assert most < MOST
