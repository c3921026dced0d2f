"""What every store of files promises: one version is read, in ranges; a file is written whole, or not at all."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from shared.backends.aws import client
from shared.backends.memory.files import MemoryFiles
from shared.backends.s3 import PART, S3Files
from shared.errors import LeaseLost, Malformed, Unavailable
from shared.wire.deposits import INLINE_BYTES, Deposits, Mark

if TYPE_CHECKING:
    from collections.abc import Iterator

fresh = itertools.count()


@pytest.fixture(scope="session")
def moto_bucket(aws_endpoint: str) -> str:
    client("s3").create_bucket(Bucket="tahan-files", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    return "tahan-files"


@pytest.fixture(params=["memory", "moto"])
def files(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryFiles()
    bucket = request.getfixturevalue("moto_bucket")
    return S3Files(client("s3"), {"imports": bucket})


def name() -> str:
    return f"uploads/{next(fresh)}"


def test_a_file_is_read_in_ranges_of_what_was_written(files: Any) -> None:
    key = name()
    assert files.look("imports", key) is None
    files.write("imports", key, [b"hello ", b"", b"world"])
    file = files.look("imports", key)
    assert file.size == 11
    assert files.read("imports", key, file.tag, 0, 11) == b"hello world"
    assert files.read("imports", key, file.tag, 4, 7) == b"o w"


def test_an_empty_file_is_a_file(files: Any) -> None:
    key = name()
    files.write("imports", key, [])
    assert files.look("imports", key).size == 0


def test_another_version_is_told_from_the_one_that_was_looked_at(files: Any) -> None:
    key = name()
    files.write("imports", key, [b"first"])
    tag = files.look("imports", key).tag
    files.write("imports", key, [b"second"])
    assert files.read("imports", key, tag, 0, 5) is None
    assert files.read("imports", name(), tag, 0, 5) is None  # there is none


def test_a_range_beyond_the_end_is_no_range_of_it(files: Any) -> None:
    key = name()
    files.write("imports", key, [b"short"])
    tag = files.look("imports", key).tag
    assert files.read("imports", key, tag, 0, 9) is None
    assert files.read("imports", key, tag, 9, 12) is None


def test_a_large_file_is_written_in_parts_and_is_one_file(files: Any) -> None:
    key, chunk = name(), b"0123456789abcdef" * 65_536  # a megabyte
    files.write("imports", key, [chunk] * 12 + [b"end"])
    file = files.look("imports", key)
    assert file.size == 12 * len(chunk) + 3
    assert files.read("imports", key, file.tag, PART - 3, PART + 3) == (chunk * 6)[PART - 3 : PART + 3]
    assert files.read("imports", key, file.tag, file.size - 3, file.size) == b"end"


def test_a_file_whose_writing_fails_is_as_it_was(files: Any) -> None:
    key, chunk = name(), b"x" * PART
    files.write("imports", key, [b"before"])

    def failing() -> Iterator[bytes]:
        yield chunk
        yield chunk
        raise TimeoutError

    with pytest.raises(TimeoutError):
        files.write("imports", key, failing())
    file = files.look("imports", key)
    assert files.read("imports", key, file.tag, 0, 6) == b"before"


def test_what_was_begun_and_not_finished_is_taken_away(moto_bucket: str) -> None:
    s3 = client("s3")
    store, key = S3Files(s3, {"imports": moto_bucket}), name()

    def failing() -> Iterator[bytes]:
        yield b"x" * PART
        yield b"x" * PART
        raise TimeoutError

    with pytest.raises(TimeoutError):
        store.write("imports", key, failing())
    assert s3.list_multipart_uploads(Bucket=moto_bucket).get("Uploads", []) == []


def test_what_is_deposited_is_fetched_whole_whatever_store_keeps_it(files: Any) -> None:
    deposits = Deposits(Renamed(files))
    text = "ü" * INLINE_BYTES
    mark = deposits.fit(text)
    assert Mark.read(mark) == Mark.of(text)
    assert deposits.fit(text) == mark
    assert deposits.whole(mark) == text
    with pytest.raises(Malformed, match="deposit-gone"):
        deposits.whole(str(Mark.of(f"{text} and more")))


@dataclass
class Renamed:
    """The bucket of these tests, as that of deposits."""

    files: Any

    def look(self, bucket: str, key: str) -> Any:
        return self.files.look("imports", key)

    def read(self, bucket: str, key: str, tag: str, start: int, end: int) -> Any:
        return self.files.read("imports", key, tag, start, end)

    def write(self, bucket: str, key: str, chunks: Any) -> None:
        self.files.write("imports", key, chunks)


class Refusing:
    """S3, with one call that fails, and an abort that does, too."""

    def __init__(self, inner: Any, code: str) -> None:
        self.inner, self.code = inner, code

    def complete_multipart_upload(self, **asked: Any) -> Any:
        if self.code == "NoSuchUpload":  # an earlier try was done, and its reply lost
            self.inner.complete_multipart_upload(**asked)
        status = {"SlowDown": 503, "InternalError": 500}.get(self.code, 404)
        response: Any = {"Error": {"Code": self.code}, "ResponseMetadata": {"HTTPStatusCode": status}}
        raise ClientError(response, "CompleteMultipartUpload")

    def abort_multipart_upload(self, **asked: Any) -> Any:
        raise ClientError({"Error": {"Code": "NoSuchUpload"}}, "AbortMultipartUpload")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.mark.parametrize("code", ["NoSuchUpload", "SlowDown", "InternalError"])
def test_an_end_of_an_upload_that_nobody_knows_is_tried_again(moto_bucket: str, code: str) -> None:
    store, key = S3Files(Refusing(client("s3"), code), {"imports": moto_bucket}), name()
    with pytest.raises(Unavailable):
        store.write("imports", key, [b"x" * PART, b"y" * PART])
    S3Files(client("s3"), {"imports": moto_bucket}).write("imports", key, [b"x" * PART, b"y" * PART])
    file = store.look("imports", key)
    assert file is not None
    assert file.size == 2 * PART


def test_what_failed_is_told_and_not_that_cleaning_up_failed_too(moto_bucket: str) -> None:
    store = S3Files(Refusing(client("s3"), "x"), {"imports": moto_bucket})

    def failing() -> Iterator[bytes]:
        yield b"x" * PART
        yield b"x" * PART
        raise LeaseLost

    with pytest.raises(LeaseLost):
        store.write("imports", name(), failing())
