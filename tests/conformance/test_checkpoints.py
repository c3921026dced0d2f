"""What every store of job records promises of a long job's steps and its progress."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from shared.claim import Granted
from shared.commit import Checkpoint, Commit, Progress, Reconciliation, Release
from shared.errors import ClaimLost, Conflict
from shared.item import Create, Replace
from shared.job_record import Status
from shared.outbox import Posting
from shared.tag import Tag, Version
from tests.conformance.claims import FAILURE, SOON, again, claim, fresh, granted
from tests.world import START, THINGS

if TYPE_CHECKING:
    from tests.conformance.conftest import Stores

LATER = START + timedelta(hours=1)


def step(number: int, *things: str, state: str = '{"line":1}') -> Checkpoint:
    writes = tuple(Create(THINGS, (thing,), {"id": thing}) for thing in things)
    return Checkpoint(number, state, (Tag("t", Version(7)),), writes)


def new_thing() -> str:
    return f"step-{next(fresh)}"


def test_a_checkpoint_writes_its_step_and_the_job_stays_held(stores: Stores) -> None:
    first, thing = claim(), new_thing()
    hold = granted(stores, first).hold
    posting = Posting(f"posting-{next(fresh)}", "notes", "{}")
    done = Progress(3, START, 9, "rows")
    stores.records.checkpoint(
        hold, Checkpoint(1, '{"a":1}', writes=step(1, thing).writes, postings=(posting,), progress=done), START
    )
    view = stores.records.view(first.record)
    assert (view.status, view.token, view.checkpoints, view.checkpoint) == (Status.RUNNING, first.token, 1, '{"a":1}')
    assert (view.progress, view.claim_until, view.attempts) == (done, first.until, 1)
    assert stores.items.read(THINGS, (thing,)).version == 1
    stores.records.checkpoint(hold, step(2), START)
    stores.records.commit(hold, Commit(Status.COMPLETED, "1"), START)
    view = stores.records.view(first.record)
    assert (view.status, view.checkpoints, view.checkpoint, view.progress) == (Status.COMPLETED, 2, None, done)


def test_a_checkpoint_that_is_repeated_is_written_once(stores: Stores) -> None:
    hold, thing = granted(stores, claim()).hold, new_thing()
    for _ in range(2):
        stores.records.checkpoint(hold, step(1, thing), START)
    assert stores.items.read(THINGS, (thing,)).version == 1
    stores.records.checkpoint(hold, step(2), START)
    with pytest.raises(ClaimLost):  # an old request that was on its way for long
        stores.records.checkpoint(hold, step(1), START)


def test_i20_whoever_takes_a_job_over_is_told_its_last_checkpoint(stores: Stores) -> None:
    first = claim()
    hold = granted(stores, first).hold
    stores.records.checkpoint(hold, step(1, state='{"line":1}'), START)
    stores.records.checkpoint(hold, step(2, state='{"line":2}'), START)
    second = granted(stores, again(first), first.until + SOON)
    assert (second.view.checkpoints, second.view.checkpoint, second.view.checkpoint_tags) == (
        2,
        '{"line":2}',
        (Tag("t", Version(7)),),
    )
    stores.records.release(second.hold, Release(LATER, FAILURE), LATER)
    assert granted(stores, again(first, until=LATER + SOON), LATER).view.checkpoint == '{"line":2}'


def test_i15_a_zombie_neither_writes_a_step_nor_tells_progress(stores: Stores) -> None:
    first, thing = claim(), new_thing()
    zombie = granted(stores, first).hold
    later = first.until + SOON
    winner = granted(stores, again(first), later).hold
    with pytest.raises(ClaimLost):
        stores.records.checkpoint(zombie, step(1, thing), later)
    with pytest.raises(ClaimLost):
        stores.records.note_progress(zombie, Progress(1, later))
    assert stores.items.read(THINGS, (thing,)) is None
    stores.records.note_progress(winner, Progress(2, later, note="x"))
    view = stores.records.view(first.record)
    assert (view.progress, view.checkpoints) == (Progress(2, later, note="x"), 0)
    stores.records.commit(winner, Commit(Status.COMPLETED), later)
    with pytest.raises(ClaimLost):
        stores.records.checkpoint(winner, step(1), later)
    with pytest.raises(ClaimLost):
        stores.records.note_progress(winner, Progress(3, later))


def test_i28_a_step_whose_item_has_changed_writes_nothing(stores: Stores) -> None:
    first, thing, other = claim(), new_thing(), new_thing()
    hold = granted(stores, first).hold
    stores.records.checkpoint(hold, step(1, thing), START)
    stale = Replace(THINGS, (thing,), {"id": thing, "x": 1}, 7, frozenset({"x"}))
    with pytest.raises(Conflict):
        stores.records.checkpoint(hold, Checkpoint(2, "{}", writes=(*step(2, other).writes, stale)), START)
    assert stores.items.read(THINGS, (other,)) is None
    assert stores.records.view(first.record).checkpoints == 1


def test_a_replayed_dead_letter_goes_on_behind_its_checkpoint_and_another_job_of_the_key_does_not(
    stores: Stores,
) -> None:
    first = claim()
    hold = granted(stores, first).hold
    stores.records.checkpoint(hold, step(1), START)
    stores.records.bury(hold, 1, FAILURE, START)
    answer = stores.records.claim(again(first, death=1), LATER)
    assert isinstance(answer, Granted)
    assert (answer.attempt, answer.view.checkpoints, answer.view.checkpoint) == (1, 1, '{"line":1}')
    once = claim(reopens=START, job_id="first")
    hold = granted(stores, once).hold
    stores.records.checkpoint(hold, step(1), START)
    stores.records.note_progress(hold, Progress(1, START))
    stores.records.commit(hold, Commit(Status.COMPLETED), START)
    anew = granted(stores, again(once, reopens=LATER, job_id="second"), LATER)
    assert (anew.view.checkpoints, anew.view.checkpoint, anew.view.checkpoint_tags) == (0, None, ())
    assert stores.records.view(once.record).progress is None


def test_the_intents_of_calls_that_were_answered_go_with_the_step_and_the_others_stay(stores: Stores) -> None:
    first = claim()
    hold = granted(stores, first).hold
    for name in ("shop", "bank"):
        assert stores.records.intend(hold, name)
    stores.records.checkpoint(hold, Checkpoint(1, "{}", settled=frozenset({"shop"})), LATER)
    view = stores.records.view(first.record)
    assert (dict(view.intents), view.stepped_at) == ({"bank": first.token}, LATER)
    second = granted(stores, again(first), first.until + SOON)
    assert stores.records.intend(second.hold, "shop")
    assert not stores.records.intend(second.hold, "bank")


def test_a_reconciliation_may_put_a_step_behind_the_job_that_it_lets_run_again(stores: Stores) -> None:
    first, settling = claim(), claim()
    hold = granted(stores, first).hold
    stores.records.checkpoint(hold, step(1, state='{"at":1}'), START)
    stores.records.commit(hold, Commit(Status.UNKNOWN, failure=FAILURE), START)
    done = Reconciliation(first.record, Status.RETRYING, checkpoint='{"at":2}')
    stores.records.commit(granted(stores, settling).hold, Commit(Status.COMPLETED, reconciliations=(done,)), START)
    view = stores.records.view(first.record)
    assert (view.status, view.checkpoint, view.checkpoints) == (Status.RETRYING, '{"at":2}', 2)
    assert (view.stepped_at, view.begun_at) == (None, None)  # its keys are new
