"""Files in S3 that jobs read and write: declared as folders of a bucket; what a handler may do with them, and how.

A file is read in ranges, of one version of it, and written whole under a name that the job derives from its own: writing it
again, after a crash, writes the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shared.errors import DeclarationError, Refused
from shared.failpoints import Failpoint, failpoint
from shared.table import NAME, Right

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

LONGEST_NAME = 1024  # bytes of a key (Amazon S3 user guide, "Naming Amazon S3 objects")
CHUNK = 1024 * 1024  # bytes that are read at once


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a bucket, by their logical names: `Folder("imports", "uploads")`."""

    bucket: str
    name: str

    def __post_init__(self) -> None:
        """Refuse names that infra could not use.

        Raises:
            DeclarationError: with the repair.
        """
        for name in (self.bucket, self.name):
            if not NAME.fullmatch(name):
                message = f"Folder({self.bucket!r}, {self.name!r}): use lower case words joined by '-', like 'uploads'."
                raise DeclarationError(message)

    @property
    def read(self) -> Reach:
        """The right to read its files."""
        return Reach(self, Right.READ)

    @property
    def read_write(self) -> Reach:
        """The right to read and write its files."""
        return Reach(self, Right.READ_WRITE)

    def key(self, name: str) -> str:
        """The key of a file in its bucket.

        Raises:
            Refused: no file can be called so.
        """
        key = f"{self.name}/{name}"
        parts = name.split("/")
        if not name.isprintable() or {"", ".", ".."} & set(parts) or len(key.encode(errors="replace")) > LONGEST_NAME:
            message = f"A file of {self.name} cannot be called {name[:40]!r}: use names joined by single slashes."
            raise Refused(message)
        return key


@dataclass(frozen=True, slots=True)
class Reach:
    """What a job declares in `uses` about a folder."""

    folder: Folder
    right: Right


@dataclass(frozen=True, slots=True)
class File:
    """A version of a file: its size in bytes, and the tag by which S3 knows that version."""

    size: int
    tag: str


class FileStore(Protocol):
    """Where files are kept."""

    def look(self, bucket: str, key: str) -> File | None:
        """The file as it is now; None if there is none.

        Raises:
            Unavailable: no answer.
        """
        ...

    def read(self, bucket: str, key: str, tag: str, start: int, end: int) -> bytes | None:
        """The bytes from `start` up to `end` of that version; None if the file is another one now, or gone.

        Raises:
            Unavailable: no answer.
        """
        ...

    def write(self, bucket: str, key: str, chunks: Iterable[bytes]) -> None:
        """Write a file, in place of what was there, when all chunks are; memory holds a few megabytes of them.

        Raises:
            Unavailable: no answer; it may be written.
        """
        ...


class OnFirstUse:
    """A store that is made when it is first asked: most functions never are."""

    def __init__(self, make: Callable[[], FileStore]) -> None:
        """Make nothing yet."""
        self._make = make
        self._made: FileStore | None = None

    @property
    def _store(self) -> FileStore:
        if self._made is None:  # two threads may make two: the second one stays
            self._made = self._make()
        return self._made

    def look(self, bucket: str, key: str) -> File | None:
        """The file as it is now."""
        return self._store.look(bucket, key)

    def read(self, bucket: str, key: str, tag: str, start: int, end: int) -> bytes | None:
        """A range of that version."""
        return self._store.read(bucket, key, tag, start, end)

    def write(self, bucket: str, key: str, chunks: Iterable[bytes]) -> None:
        """Write a file."""
        self._store.write(bucket, key, chunks)


class Changed(Exception):  # noqa: N818 - what has happened to the file
    """The file is another one than when it was first looked at: nothing can be said of a mixture of both."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files that one attempt may reach.

    Attributes:
        check: raises what tells the handler to stop, before each access.
    """

    store: FileStore | None
    reaches: tuple[Reach, ...]
    check: Callable[[], None]

    def look(self, folder: Folder, name: str) -> File | None:
        """A file as it is now; None if there is none.

        Raises:
            DeclarationError: the job does not declare the folder in `uses`.
            Refused: no file can be called so.
            Unavailable: no answer.
        """
        return self._demand(folder, Right.READ).look(folder.bucket, folder.key(name))

    def chunks(self, folder: Folder, name: str, tag: str, start: int, end: int) -> Iterator[bytes]:
        """The bytes from `start` up to `end` of one version of a file, a megabyte at a time.

        Raises:
            Changed: it is another one now.
            DeclarationError: Refused, Unavailable: as for `look`.
        """
        store, key = self._demand(folder, Right.READ), folder.key(name)
        for place in range(start, end, CHUNK):
            self.check()
            chunk = store.read(folder.bucket, key, tag, place, min(place + CHUNK, end))
            if chunk is None:
                message = f"{name} has changed since it was first read."
                raise Changed(message)
            yield chunk

    def write(self, folder: Folder, name: str, chunks: Iterable[bytes]) -> None:
        """Write a file whole, in place of what was there.

        Raises:
            DeclarationError: the job may not write there.
            Refused: no file can be called so.
            Unavailable: no answer; it may be written, and is written again with the next attempt.
        """
        store = self._demand(folder, Right.READ_WRITE)
        self.check()
        store.write(folder.bucket, folder.key(name), chunks)
        failpoint(Failpoint.FILE_WRITTEN)

    def _demand(self, folder: Folder, right: Right) -> FileStore:
        for reach in self.reaches:
            if reach.folder == folder and (right is Right.READ or reach.right is Right.READ_WRITE):
                if self.store is None:
                    break
                return self.store
        message = f"The job uses folder {folder.name!r} of {folder.bucket!r} ({right.value}) without declaring it: add it to `uses`."
        raise DeclarationError(message)
