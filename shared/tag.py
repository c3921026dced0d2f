"""What an invalidation drops: a tag, and perhaps the version below which nothing may be cached under it for a while.

Knows neither where entries are kept nor where versions come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering
from typing import TYPE_CHECKING, Self

from shared.errors import Refused

if TYPE_CHECKING:
    from shared.caching.lives import Lives
    from shared.caching.store import Loaded

DIGITS = 99  # of a number at the most: the length is written with two
_LENGTH = 2


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """How new a value is: by its epoch first, then by its number.

    What is created anew begins with a low number again; a higher epoch makes it newer than all of its earlier life.

    Attributes:
        number: grows with each change; 0 or more.
        epoch: grows with each creation; 0 or more.

    Raises:
        Refused: one is negative, has more than 99 digits, or is no integer.
    """

    number: int
    epoch: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be written."""
        for part in (self.number, self.epoch):
            if type(part) is not int or not 0 <= part < 10**DIGITS:
                message = (
                    f"A version is made of integers from 0 up to {DIGITS} digits, not of another {type(part).__name__}."
                )
                raise Refused(message)

    def __lt__(self, other: object) -> bool:
        """Whether this one is older."""
        if not isinstance(other, Version):
            return NotImplemented
        return (self.epoch, self.number) < (other.epoch, other.number)

    @property
    def text(self) -> str:
        """Digits that compare as plain strings exactly as versions do: each number behind its length.

        Lua's numbers are doubles, which no longer tell 2^53 from 2^53 + 1; its strings compare byte by byte.
        """
        return _with_length(self.epoch) + _with_length(self.number)

    @classmethod
    def read(cls, text: str) -> Self:
        """The version that was written as this text.

        Raises:
            ValueError: it is no version's text.
        """
        epoch, rest = _split(text)
        number, rest = _split(rest)
        version = cls(number, epoch)
        if rest or version.text != text:
            message = f"{text!r:.80} is no version's text."
            raise ValueError(message)
        return version


@dataclass(frozen=True, slots=True)
class Fresh:
    """What takes the place of an entry that its invalidation drops, if it was there: its name, what is new, for how long.

    The entry has a version, which is its tag's floor.
    """

    name: str
    entry: Loaded
    lives: Lives


@dataclass(frozen=True, slots=True)
class Tag:
    """A group of cache entries that one invalidation drops.

    Attributes:
        name: not empty.
        floor: entries of a lower version are refused for a while after the invalidation; None if nobody knows a version.
        fresh: of one entry, what is kept instead; None drops them all.
    """

    name: str
    floor: Version | None = None
    fresh: Fresh | None = None

    def __post_init__(self) -> None:
        """Refuse a tag without a name.

        Raises:
            Refused: the name is empty or no string.
        """
        if not isinstance(self.name, str) or not self.name:
            message = f"A cache tag is a string that is not empty, not {self.name!r}."
            raise Refused(message)

    @property
    def bare(self) -> Tag:
        """The invalidation alone, as a job record keeps it: what was fresh then may be old when it is repeated."""
        return Tag(self.name, self.floor)

    def joined(self, other: Tag) -> Tag:
        """One tag for two invalidations of the same name: the higher floor holds, and only what both would keep is kept."""
        floors = [floor for floor in (self.floor, other.floor) if floor is not None]
        return Tag(self.name, max(floors, default=None), self.fresh if self.fresh == other.fresh else None)


def _with_length(number: int) -> str:
    digits = str(number)
    return f"{len(digits):0{_LENGTH}}{digits}"


def _split(text: str) -> tuple[int, str]:
    end = _LENGTH + int(text[:_LENGTH])
    return int(text[_LENGTH:end]), text[end:]
