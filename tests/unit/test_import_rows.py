"""Rows of a file: the same however it is cut into chunks and ranges, and no quote and no line swallows the rest."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.import_rows import COLUMNS, LONGEST_ROW, Format, Product, Row, columns_of, product_of, rows_of


def chunked(data: bytes, size: int) -> list[bytes]:
    return [data[place : place + size] for place in range(0, len(data), size)]


def read(data: bytes, file_format: Format = Format.CSV, size: int = 7) -> list[Row]:
    return list(rows_of(chunked(data, size), file_format))


def texts(data: bytes, file_format: Format = Format.CSV, size: int = 7) -> list[bytes | None]:
    return [row.text for row in read(data, file_format, size)]


def test_rows_have_their_lines_and_places() -> None:
    data = b'a,b\r\n"x\ny",2\n\n3,4'
    assert read(data) == [
        Row(1, 0, 5, 1, b"a,b"),
        Row(2, 5, 13, 2, b'"x\ny",2'),
        Row(5, 14, 17, 1, b"3,4"),
    ]
    assert texts(data, Format.JSON_LINES) == [b"a,b", b'"x', b'y",2', b"3,4"]
    assert read(b"") == []


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 1000])
def test_a_quote_that_nobody_closes_costs_one_line(size: int) -> None:
    data = b'1,"open\n2,fine\n3,"a ""quoted"" word"\n'
    assert texts(data, size=size) == [None, b"2,fine", b'3,"a ""quoted"" word"']


def test_a_quote_that_is_closed_too_far_away_costs_one_line_and_the_others_are_rows() -> None:
    lines = [f"{number},x" for number in range(LONGEST_ROW // 4)]
    data = ("\n".join(['0,"open', *lines, 'closed",1']) + "\n").encode()
    found = texts(data, size=4096)
    assert found[0] is None
    assert found[1:-1] == [line.encode() for line in lines]
    assert found[-1] == b'closed",1'  # a quote within a field opens nothing


@pytest.mark.parametrize("file_format", Format)
def test_a_line_without_end_is_one_row_that_is_refused_and_is_not_kept(file_format: Format) -> None:
    data = b"x" * (3 * LONGEST_ROW) + b"\nshort\n"
    long, short = read(data, file_format, size=1000)
    assert (long.text, long.end, short.text, short.line) == (None, 3 * LONGEST_ROW + 1, b"short", 2)
    exact = b"y" * (LONGEST_ROW - 1) + b"\n"
    assert texts(exact, file_format, size=999) == [exact[:-1]]


TEXT = st.lists(st.sampled_from(['"', "\n", "\r\n", ",", "a", "é", '""', " ", '"x\ny"']), max_size=60).map("".join)


@given(TEXT, st.integers(1, 20), st.sampled_from(Format))
def test_rows_are_the_same_in_whatever_chunks_they_come(text: str, size: int, file_format: Format) -> None:
    data = text.encode()
    assert read(data, file_format, size) == read(data, file_format, max(len(data), 1))


@given(TEXT, st.sampled_from(Format), st.data())
def test_a_range_between_two_rows_has_the_same_rows_as_within_the_file(
    text: str, file_format: Format, data: Any
) -> None:
    whole = read(text.encode(), file_format)
    if not whole:
        return
    first = data.draw(st.integers(0, len(whole) - 1))
    last = data.draw(st.integers(first, len(whole) - 1))
    body = text.encode()[whole[first].start : whole[last].end]
    again = list(rows_of([body], file_format, start=whole[first].start, line=whole[first].line))
    assert again == whole[first : last + 1]


@given(TEXT, st.sampled_from(Format))
def test_rows_are_in_order_and_nothing_but_blank_lines_is_left_out(text: str, file_format: Format) -> None:
    data, rows = text.encode(), read(text.encode(), file_format)
    for before, after in pairwise(rows):
        assert before.end <= after.start
        assert before.line + before.lines <= after.line
    kept = b"".join(data[row.start : row.end] for row in rows)
    assert kept.split() == data.split()


@given(
    st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00\r")), min_size=2, max_size=4),
        max_size=6,
    )
)
def test_what_csv_writes_is_read_row_by_row(fields: list[list[str]]) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(fields)
    rows = read(out.getvalue().encode())
    expected = [row for row in fields if any(row) or len(row) > 1]
    assert len(rows) == len(expected)
    columns = [str(number) for number in range(4)]
    for row, want in zip(rows, expected, strict=True):
        assert row.text is not None
        assert next(csv.reader([row.text.decode()])) == want, columns


HEADER = ",".join(COLUMNS)


def product(text: str, columns: tuple[str, ...] | None = COLUMNS) -> Product | str:
    return product_of(Row(2, 0, len(text), 1, text.encode()), columns)


def test_a_row_is_a_product() -> None:
    expected = Product(sku="A-1", name="Ökö, fein", price=Decimal("12.50"), stock=3)
    assert product('A-1,"Ökö, fein",12.50,3') == expected
    assert product('{"sku":"A-1","name":"Ökö, fein","price":"12.50","stock":3}', None) == expected
    assert product('{"sku":"A-1","name":"Ökö, fein","price":12.50,"stock":3}', None) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A,b,1.00,-1", "stock: greater_than_equal"),
        ("A,b,1.001,1", "price: decimal_max_places"),
        ("A,b,NaN,1", "price: finite_number"),
        ("A,b,x,y", "price: decimal_parsing; stock: int_parsing"),
        ("A b,,1,1", "sku: string_pattern_mismatch; name: string_too_short"),
        ("A,b,1", "row: 3_fields_for_4_columns"),
        ('A,b"c,1,"1"x', "row: no_csv"),
    ],
)
def test_what_is_wrong_with_a_row_is_told_without_its_values(text: str, reason: str) -> None:
    assert product(text) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "body: json_invalid"),
        ("[]", "body: model_type"),
        ('{"sku":"A","name":"b","price":"1","stock":1,"secret":"x"}', "secret: extra_forbidden"),
        ('{"sku":"A","name":"b","price":"1"}', "stock: missing"),
    ],
)
def test_what_is_wrong_with_a_line_of_json_is_told(text: str, reason: str) -> None:
    assert product(text, None) == reason


def test_bytes_that_are_no_text_are_refused() -> None:
    assert product_of(Row(1, 0, 3, 1, b"\xff\xfe"), COLUMNS) == "row: no_csv"
    assert product_of(Row(1, 0, 3, 1, b"\xff\xfe"), None) == "body: json_invalid"
    assert product_of(Row(1, 0, 9, 1, None), COLUMNS) == "row: longer_than_65536_bytes_or_without_end"


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        (HEADER, COLUMNS),
        ("stock,price,name,sku", ("stock", "price", "name", "sku")),
        (f"\ufeff{HEADER}", COLUMNS),
        ("sku,name,price", None),
        (f"{HEADER},more", None),
        ("sku,sku,price,stock", None),
        ('"sku', None),
    ],
)
def test_the_header_names_the_columns_in_any_order(header: str, columns: tuple[str, ...] | None) -> None:
    assert columns_of(Row(1, 0, 1, 1, header.encode())) == columns
    assert columns_of(Row(1, 0, 1, 1, None)) is None


def test_inch_marks_swallow_nothing_of_what_is_between_them() -> None:
    lines = [
        'p1,Pipe 5" steel,2.00,3',
        *(f"p{number},Pipe,1.00,1" for number in range(2, 300)),
        'p300,Pipe 6" steel,2.00,3',
    ]
    data = ("\n".join(lines) + "\n").encode()
    assert texts(data, size=4096) == [line.encode() for line in lines]
    product_ = product_of(Row(1, 0, 1, 1, lines[0].encode()), COLUMNS)
    assert isinstance(product_, Product)
    assert product_.name == 'Pipe 5" steel'


def test_an_open_quote_and_an_inch_mark_make_no_row_of_what_is_between_them() -> None:
    data = b'1,"open\n2,fine\n3,5" pipe\n4,fine\n'
    assert texts(data) == [None, b"2,fine", b'3,5" pipe', b"4,fine"]
