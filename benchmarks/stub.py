"""A DynamoDB that answers at once, whatever it is asked: `python -m benchmarks.stub PORT`.

For measures of which only the client's side counts. It keeps nothing: an update that asks for the new item gets a job
record as a claim leaves it, a read finds nothing, and every write succeeds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import zlib

RECORD = {
    "id": {"S": "0" * 64},
    "status": {"S": "running"},
    "attempts": {"N": "1"},
    "fingerprint": {"S": "1:" + "0" * 64},
    "death": {"N": "0"},
    "attempt_token": {"S": "0" * 32},
    "in_progress_expiration": {"N": "1893456000000"},
    "payload": {"S": '{"text":"x","thing":"a"}'},
    "job_id": {"S": ""},
    "trace": {"S": ""},
    "run_at": {"N": "0"},
    "schema_version": {"N": "1"},
    "owner": {"S": "system"},
    "job_type": {"S": "note"},
    "idempotency_key": {"S": "k1"},
    "operation_id": {"S": "0" * 64},
    "created_at": {"S": "2026-01-01T00:00:00+00:00"},
    "updated_at": {"S": "2026-01-01T00:00:00+00:00"},
    "begun_at": {"S": "2026-01-01T00:00:00+00:00"},
}
BLANK_LINE = b"\r\n\r\n"


def answer(body: bytes) -> bytes:
    """A whole HTTP response to a request with that body."""
    content = json.dumps({"Attributes": RECORD} if b'_NEW"' in body else {}).encode()
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\n"
        f"x-amzn-RequestId: {'0' * 52}\r\nx-amz-crc32: {zlib.crc32(content)}\r\nContent-Length: {len(content)}\r\n"
    )
    return head.encode() + b"\r\n" + content


class Answering(asyncio.Protocol):
    """One connection, which stays open."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to listen."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what a TCP server gives
        self._transport = transport
        self._heard = b""

    def data_received(self, data: bytes) -> None:
        """Answer each request that is there in full."""
        self._heard += data
        while BLANK_LINE in self._heard:
            head, _, rest = self._heard.partition(BLANK_LINE)
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                ),
                0,
            )
            if len(rest) < length:
                return
            self._transport.write(answer(rest[:length]))
            self._heard = rest[length:]


async def serve(port: int) -> None:
    """Answer until the process ends."""
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
