"""The audit in CloudWatch Logs, and who the caller is. A stream a command: nobody waits for anybody's place in it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from shared.backends.aws import client, translated
from shared.clock import to_millis
from shared.errors import Unavailable

if TYPE_CHECKING:
    from shared.clock import Clock


@dataclass
class CloudWatchAudit:
    """A log group.

    Attributes:
        client: a client of CloudWatch Logs.
        group: its name.
        stream: a fresh name.
    """

    client: Any
    group: str
    clock: Clock
    stream: str
    _is_made: bool = field(default=False, init=False)

    def write(self, line: str) -> None:
        """Keep a line.

        Raises:
            Unavailable: CloudWatch did not take it, for whatever reason.
        """
        try:
            with translated("logs"):
                self._make()
                event = {"timestamp": to_millis(self.clock.now()), "message": line}
                answer = self.client.put_log_events(
                    logGroupName=self.group, logStreamName=self.stream, logEvents=[event]
                )
        except ClientError as error:
            message = f"logs refuses it ({error.response['Error']['Code']})."
            raise Unavailable(message, dependency="logs") from error
        if answer.get("rejectedLogEventsInfo"):
            message = "logs rejected the line: the clock of this machine is off."
            raise Unavailable(message, dependency="logs")

    def _make(self) -> None:
        if not self._is_made:
            with contextlib.suppress(self.client.exceptions.ResourceAlreadyExistsException):  # a reply was lost
                self.client.create_log_stream(logGroupName=self.group, logStreamName=self.stream)
            self._is_made = True


def caller() -> str:
    """Who the credentials are of.

    Raises:
        Unavailable: no answer.
    """
    with translated("sts"):
        return str(client("sts").get_caller_identity()["Arn"])
