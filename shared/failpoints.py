"""Named places behind every step that does I/O, where tests let a process die or stand still.

Off, a failpoint is one comparison. Nothing in the product switches them on: there is no setting for it, only `armed`,
which tests call; a test holds that to be so.
"""

from __future__ import annotations

import contextlib
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Failpoint(StrEnum):
    """Every failpoint, in the order in which a message may pass them; a test shows that each is passed."""

    RECEIVED = "received"  # nothing has been done for the delivery yet
    LOCKED_TOGETHER = "locked-together"  # the leases of a batch are taken
    LEASED = "leased"
    CLAIMED = "claimed"
    ITEM_READ = "item-read"
    FENCED = "fenced"  # a fencing number is allocated
    INTENDED = "intended"  # an intent is written, before a call that cannot be repeated
    CALLING = "calling"  # an outside call is about to be sent
    CALLED = "called"  # its answer is here
    FILE_WRITTEN = "file-written"  # whole, and the step that names it is not committed
    BEAT_CLAIM = "beat-claim"  # a heartbeat has prolonged the claim
    BEAT_MESSAGE = "beat-message"  # and hidden the message for longer
    CHECKPOINTED = "checkpointed"  # a step is committed, its tags are not dropped
    STEP_INVALIDATED = "step-invalidated"
    PROGRESS_TOLD = "progress-told"
    WAITING = "waiting"  # a job waits for its parts, and has not looked whether they have all ended
    HANDLED = "handled"  # the handler has returned, nothing is written
    COMMITTED = "committed"
    CLAIM_RELEASED = "claim-released"
    INVALIDATED = "invalidated"  # tags dropped, leases given back
    LEASES_RETURNED = "leases-returned"  # of a delivery that ended early
    HIDDEN = "hidden"  # the message's wait is set
    SENT_ANEW = "sent-anew"  # its copy is in the outbox
    DEAD_LETTER_SENT = "dead-letter-sent"
    BURIED = "buried"  # the job record is marked dead-lettered
    ANSWERING = "answering"  # the batch is done, Lambda does not know yet
    RELAY_RECEIVED = "relay-received"
    RELAY_SENT = "relay-sent"  # some messages are on their queues, none is marked
    RELAY_MARKED = "relay-marked"
    RELAY_GAVE_UP = "relay-gave-up"  # the job of what cannot be sent is told so, the message is not parked
    RELAY_PARKED = "relay-parked"
    ENDS_RECEIVED = "ends-received"  # the ends of parts, of which nothing is noted
    ENDS_NOTED = "ends-noted"  # no parent is told
    TALLY_TOLD = "tally-told"  # the parent shows it, and is not woken
    WOKEN = "woken"
    RESCUED = "rescued"  # a lost message is in the outbox anew, the job record does not know
    BRAKE_NOTED = "brake-noted"  # a brake is written, the mapping runs as before
    BRAKE_FREED = "brake-freed"  # the mapping runs again, the brake is still written
    LETTERS_TAKEN = "letters-taken"  # dead letters are hidden from others, nothing is done
    REOPENED = "reopened"  # the jobs of dead letters are accepted again, no copy is sent
    COPIES_SENT = "copies-sent"  # copies are on the worker's queue, their dead letters are still there
    LETTERS_DELETED = "letters-deleted"
    ARCHIVED = "archived"  # what is to be discarded is in the archive, and untouched
    ENDED_BY_PEOPLE = "ended-by-people"  # the job record is ended, the dead letter is still there
    EDITED_SENT = "edited-sent"  # the new job is on the queue, the old one does not know
    PRODUCING = "producing"  # a producer is about to send
    PRODUCED = "produced"
    CACHE_FETCHED = "cache-fetched"
    CACHE_LOADED = "cache-loaded"  # read from the source, not stored yet
    CACHE_STORED = "cache-stored"


_action: Callable[[Failpoint], None] | None = None


def failpoint(name: Failpoint) -> None:
    """Do what tests have armed; otherwise nothing."""
    if _action is not None:
        _action(name)


@contextlib.contextmanager
def armed(action: Callable[[Failpoint], None]) -> Iterator[None]:
    """Call `action` at every failpoint of this process while the block lasts; for tests alone."""
    global _action  # noqa: PLW0603 - one switch for the process, as cheap as can be where it is off
    before, _action = _action, action
    try:
        yield
    finally:
        _action = before
