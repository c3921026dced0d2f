"""Files in S3: ranges of one version of an object, and objects written in parts of a few megabytes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from shared.backends.aws import code_of, translated
from shared.errors import StoreUnavailable
from shared.files import File

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PART = 5 * 1024 * 1024  # bytes: the least that S3 takes for a part that is not the last (CompleteMultipartUpload)
GONE = frozenset({"404", "NoSuchKey", "NotFound"})
CHANGED = frozenset({"412", "PreconditionFailed", "InvalidRange", "416"})
READ_SECONDS = 10.0  # of a client for files: a megabyte takes longer than an item


@dataclass(frozen=True, slots=True)
class S3Files:
    """Buckets by their logical names."""

    client: Any
    buckets: Mapping[str, str]

    def look(self, bucket: str, key: str) -> File | None:
        """The file as it is now."""
        try:
            with translated("s3"):
                answer = self.client.head_object(Bucket=self.buckets[bucket], Key=key)
        except ClientError as error:
            if code_of(error) in GONE:
                return None
            raise
        return File(answer["ContentLength"], answer["ETag"])

    def read(self, bucket: str, key: str, tag: str, start: int, end: int) -> bytes | None:
        """A range of that version."""
        try:
            with translated("s3"):
                answer = self.client.get_object(
                    Bucket=self.buckets[bucket], Key=key, Range=f"bytes={start}-{end - 1}", IfMatch=tag
                )
                body: bytes = answer["Body"].read()
        except ClientError as error:
            if code_of(error) in GONE | CHANGED:
                return None
            raise
        # The condition is the server's affair, and S3 keeps it; one that does not is found out by what it gives.
        return body if answer["ETag"] == tag and len(body) == end - start else None

    def write(self, bucket: str, key: str, chunks: Iterable[bytes]) -> None:
        """Write a file: a small one at once, a large one in parts that become one object at the end."""
        place = {"Bucket": self.buckets[bucket], "Key": key}
        parts = _parts(chunks)
        first, second = next(parts, b""), next(parts, None)
        if second is None:
            with translated("s3"):
                self.client.put_object(**place, Body=first)
            return
        with translated("s3"):
            upload = self.client.create_multipart_upload(**place)["UploadId"]
        try:
            tags = [
                self._put(place, upload, number, body) for number, body in enumerate(chain((first, second), parts), 1)
            ]
            with translated("s3"), _once():
                self.client.complete_multipart_upload(**place, UploadId=upload, MultipartUpload={"Parts": [*tags]})
        except BaseException:  # what is not completed is no file; if this fails, too, the bucket forgets it in a day
            with contextlib.suppress(Exception):
                self.client.abort_multipart_upload(**place, UploadId=upload)
            raise

    def _put(self, place: Mapping[str, str], upload: str, number: int, body: bytes) -> dict[str, Any]:
        with translated("s3"):
            answer = self.client.upload_part(**place, UploadId=upload, PartNumber=number, Body=body)
        return {"PartNumber": number, "ETag": answer["ETag"]}


@contextlib.contextmanager
def _once() -> Iterator[None]:
    """An upload that is no longer there was completed by an earlier try whose reply was lost, or was forgotten: nobody knows.

    Raises:
        Unavailable: the job writes the file again.
    """
    try:
        yield
    except ClientError as error:
        if code_of(error) != "NoSuchUpload":
            raise
        message = "s3 knows the upload no more: it may be written."
        raise StoreUnavailable(message, dependency="s3") from error


def _parts(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks, joined to parts that S3 takes."""
    waiting: list[bytes] = []
    weight = 0
    for chunk in chunks:
        waiting.append(chunk)
        weight += len(chunk)
        if weight >= PART:
            yield b"".join(waiting)
            waiting, weight = [], 0
    if waiting:
        yield b"".join(waiting)
