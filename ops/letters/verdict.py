"""What is to be done about a dead letter that people want replayed: a table of what its job record says.

A replay first makes the job ready to run again, then sends the copy, then deletes the letter. Whoever died in between
is recognised here by what the record keeps: the death under which it was made ready, and whether a copy has been claimed since.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from shared.job_record import Status
from shared.rounds.rescue import LOST

if TYPE_CHECKING:
    from datetime import datetime

    from ops.letters.dossier import Dossier
    from shared.job_record import JobView

MOST_DEATHS = 3
BEGUN = frozenset({Status.RUNNING, Status.RETRYING, Status.WAITING, Status.COMPLETED, Status.FAILED, Status.UNKNOWN})


class Fate(StrEnum):
    """What became of a letter that was to be replayed."""

    REPLAYED = "replayed"
    FINISHED = "finished"  # a replay had sent its copy and died before it deleted the letter
    ENDED = "its job has ended"
    UNDER_WAY = "its job is under way"
    OLDER = "its job has a later letter"
    TOO_OFTEN = "it was replayed too often"
    CHANGED = "its job changed meanwhile"
    BEHIND = "a letter of its group before it was not sent"
    NOT_SENT = "SQS did not take the copy"
    NOT_DELETED = "its copy is sent, and SQS did not delete it"


FAILED = frozenset({Fate.BEHIND, Fate.NOT_SENT, Fate.NOT_DELETED})  # AWS did not do what it was asked for
GONE = frozenset({Fate.REPLAYED, Fate.FINISHED})  # the letter is no longer there


@dataclass(frozen=True, slots=True)
class Reopen:
    """Make the job ready under this death, then send."""

    death: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send; there is no job record, or it is ready."""

    death: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Only delete the letter: its copy was sent and taken up."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave it where it is."""

    fate: Fate


Verdict = Reopen | Send | Finish | Leave


def verdict_on(dossier: Dossier, now: datetime, most_deaths: int | None = MOST_DEATHS) -> Verdict:
    """Decide about one letter.

    Args:
        dossier: the letter, with its job record as read just now.
        now: by which claims and waits are reckoned.
        most_deaths: a letter that has died more often is left; None if people insist.
    """
    view = dossier.view
    death = _death_of(dossier)
    too_often = most_deaths is not None and death > most_deaths
    if view is None:
        return Leave(Fate.TOO_OFTEN) if too_often else Send(death)
    if _was_replayed(dossier, view):
        return Finish()
    if view.ended:
        return Leave(Fate.ENDED)
    if _is_older(dossier, view):
        return Leave(Fate.OLDER)
    if _is_under_way(dossier, view, now):
        return Leave(Fate.UNDER_WAY)
    if too_often:
        return Leave(Fate.TOO_OFTEN)
    ready = view.status is Status.ACCEPTED and view.replayed is not None and view.death == death
    return Send(death) if ready else Reopen(death)


def _was_replayed(dossier: Dossier, view: JobView) -> bool:
    """Whether a copy of the letter was sent and taken up since: an attempt began under the death by which it was made ready."""
    if view.replayed is None or view.status not in BEGUN or view.death != view.replayed.death:
        return False  # under another death it is in a later life: a reconciliation that found nothing done begins one
    # The copy of a letter that SQS moved carries one death more than the letter.
    return view.replayed.death == dossier.death if dossier.spoke else view.replayed.death > dossier.death


def _death_of(dossier: Dossier) -> int:
    """How often the message has died by now: the number by which its copy is known."""
    view = dossier.view
    if view is None:
        return dossier.death if dossier.spoke else dossier.death + 1
    if dossier.spoke or _is_given_up(view):
        return max(dossier.death, view.death)
    interrupted = view.status is Status.ACCEPTED and view.replayed is not None and dossier.death < view.death
    return view.death if interrupted else max(dossier.death, view.death) + 1


def _is_older(dossier: Dossier, view: JobView) -> bool:
    """Whether the job died again since, or its key names another job by now."""
    name = None if dossier.message is None else dossier.message.job_id
    if name is not None and name != view.job_id and name in view.earlier:
        return True
    interrupted = view.status is Status.ACCEPTED and view.replayed is not None and not dossier.spoke
    return dossier.death < view.death and not _is_given_up(view) and not interrupted


def _is_given_up(view: JobView) -> bool:
    """Whether the rescue counted the last death, which has no letter: the job's messages were all lost to it."""
    return view.status is Status.DEAD_LETTERED and view.last_failure is not None and view.last_failure.reason == LOST


def _is_under_way(dossier: Dossier, view: JobView, now: datetime) -> bool:
    """Whether an attempt holds the job, its parts are at work, or it was given back and its message waits.

    SQS moved away the message of a silent one.
    """
    if view.status is Status.WAITING:
        return True
    if view.status is Status.RUNNING:
        return view.is_held(now)
    waits = view.not_before is not None and view.not_before > now
    return view.status is Status.RETRYING and waits and dossier.spoke
