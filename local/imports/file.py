"""The file that the import demo imports: products by the thousand, of which some rows are bad in known ways; never whole in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = "sku,name,price,stock\n"
# What is wrong with a bad row, by turns, and how the report says so.
BAD = (
    ("{sku},Product {number},,1\n", "price: decimal_parsing"),
    ("{sku},Product {number},9.99,-1\n", "stock: greater_than_equal"),
    ("{sku},,9.99,1\n", "name: string_too_short"),
    ("{sku},Product {number},9.99\n", "row: 3_fields_for_4_columns"),
)
CHUNK_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class ImportFile:
    """So many rows, of which every `bad_every`-th is bad."""

    rows: int
    bad_every: int = 100

    @property
    def bad(self) -> int:
        """How many are bad."""
        return self.rows // self.bad_every

    def chunks(self) -> Iterator[bytes]:
        """The file's bytes."""
        yield HEADER.encode()
        for first in range(0, self.rows, CHUNK_ROWS):
            yield "".join(self._row(number) for number in range(first, min(first + CHUNK_ROWS, self.rows))).encode()

    def _row(self, number: int) -> str:
        sku = sku_of(number)
        if self.is_bad(number):
            return self._badness(number)[0].format(sku=sku, number=number)
        return f"{sku},Product {number},{number % 1000}.{number % 100:02},{number}\n"

    def is_bad(self, number: int) -> bool:
        """Whether the row of that number, from 0 on, is bad."""
        return (number + 1) % self.bad_every == 0

    def _badness(self, number: int) -> tuple[str, str]:
        return BAD[number // self.bad_every % len(BAD)]

    def report(self) -> Iterator[tuple[int, str]]:
        """The line and the reason of each bad row, as the report must tell them."""
        for number in range(self.bad_every - 1, self.rows, self.bad_every):
            yield line_of(number), self._badness(number)[1]


def sku_of(number: int) -> str:
    """The name of a row's product."""
    return f"sku-{number:08}"


def line_of(number: int) -> int:
    """The line of a row: behind the header, from 1 on."""
    return number + 2
