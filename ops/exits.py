"""How the command line ends: the exit statuses, and the one error that ends it early with a sentence for people."""

from __future__ import annotations

from enum import IntEnum

from shared.errors import TahanError


class Exit(IntEnum):
    """The status that shells see; docs/reference/cli.md promises these numbers."""

    DONE = 0
    NOT_DONE = 1  # what was asked for could not be done: AWS refuses or does not answer
    REFUSED = 2  # what was asked for is wrong; nothing was sent (argparse ends so, too)
    ENDED_BADLY = 3  # the operation failed, was cancelled, or is a dead letter
    UNKNOWN = 4  # whether the operation's outside effect happened is being found out
    ABSENT = 5  # there is no such operation
    UNDER_WAY = 6  # the time to watch is over, and the operation is not
    STOPPED = 7  # a replay stopped by itself: what it replayed died again, or was not decided
    LEFT = 8  # some of what was chosen was left as it is; the summary says why
    DIFFERS = 9  # a deploy of this code would change the stack, or it runs otherwise than deployed
    HARMFUL = 10  # a deploy would remove or replace what holds data, or take away queues that hold messages
    INTERRUPTED = 130


class CommandError(TahanError):
    """The command cannot go on; the message says what to do."""

    def __init__(self, message: str, status: Exit = Exit.NOT_DONE) -> None:
        super().__init__(message)
        self.status = status
