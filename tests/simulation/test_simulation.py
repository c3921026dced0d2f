"""The short form of `make simulate`: some seeds in each mode, every fault seen, and a product without a guard found out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.outbox_sweeper import Sweeper
from ops.letters.sending import Sending
from ops.letters.verdict import Reopen
from shared import claim
from shared.backends.memory.cache import MemoryCache
from shared.backends.memory.database import MemoryDatabase
from shared.backends.memory.operator_records import MemoryOperatorRecords
from shared.job_record import OVER, JobView, Status
from shared.limits import LONGEST_DELAY
from shared.parts import Tally
from shared.rounds.again import posting_again
from shared.rounds.brake_rounds import Watchdog
from shared.rounds.counting import LOOK_EVERY, Counting
from shared.rounds.relay import Relay
from shared.work.steps import Steps
from shared.work.way import Way
from tests.modes import Mode, asked_for
from tests.simulation.history import Checks, History, Violation
from tests.simulation.run import run_seed
from tests.simulation.scheduler import Stuck
from tests.simulation.world import World

SEEDS = 60


@pytest.mark.parametrize("mode", asked_for())
def test_every_invariant_holds_in_every_run_and_every_fault_was_seen(mode: Mode) -> None:
    fired: Counter[str] = Counter()
    for seed in range(SEEDS):
        result = run_seed(seed, mode)
        assert not result.found, f"{result.found}\n{result.command}"
        assert len(result.checked) == 15 + (seed % 10 == 0)
        fired.update(result.fired)
    faults = {
        "dies_before",
        "dies_after",
        "reply_lost",
        "not_done",
        "freezes",
        "slow",
        "duplicate",
        "undeleted",
        "amnesia",
        "steps",
        "unstreamed",
        "vanishes",
        "refused",
        "stops",
        "outage",
        "replay",
        "replay broke off",
    }
    assert faults <= set(fired)


def test_a_seed_is_repeated_bit_for_bit() -> None:
    first, second = World(7), World(7)
    first.run()
    second.run()
    assert first.scheduler.switches == second.scheduler.switches
    assert first.history.changes == second.history.changes
    assert first.history.reads == second.history.reads


def found(*wanted: str, seeds: int = 40) -> bool:
    """Whether some run violates one of the invariants."""
    for seed in range(seeds):
        world = World(seed)
        try:
            world.run()
            Checks(world).all()
        except (Violation, AssertionError) as error:
            if str(error).partition(":")[0] in wanted:
                return True
    return False


def test_the_checks_notice_invalidation_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryCache, "finish", lambda self, tags, leases: None)
    assert found("I36")


def test_the_checks_notice_a_claim_that_is_granted_to_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    def held(self: History, hold: Any) -> Any:
        return self.records[hold.record]

    monkeypatch.setattr(History, "_held", held)
    assert found("I14", "I15", "I16")


def test_the_checks_notice_writes_without_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(History, "demand", lambda self, write: None)
    assert found("I14")


def test_the_runs_notice_a_sweeper_that_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the stream lost is then never sent, and the run never comes to rest."""
    monkeypatch.setattr(Sweeper, "sweep", lambda self, until: None)

    def run_some() -> None:
        for seed in range(20):
            World(seed).run()

    with pytest.raises(Stuck):
        run_some()


def test_the_runs_notice_a_sweeper_that_never_sends_what_was_scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    overdue = History.overdue

    def short(self: History, *asked: Any) -> Any:
        return (each for each in overdue(self, *asked) if self.outbox[each.posting.id].delay <= LONGEST_DELAY)

    monkeypatch.setattr(History, "overdue", short)

    def run_some() -> None:
        for seed in range(40):
            World(seed).run()

    with pytest.raises(Stuck):
        run_some()


def test_the_checks_notice_a_postponement_that_spends_an_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    release = History.release

    def spending(self: History, hold: Any, asked: Any, now: Any) -> None:
        release(self, hold, replace(asked, gives_attempt_back=False), now)

    monkeypatch.setattr(History, "release", spending)
    assert found("I19")


def test_the_checks_notice_an_outage_that_spends_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Way, "excuses", lambda self, dependency: False)
    assert found("I19", seeds=150)


def test_the_checks_notice_a_replay_that_deletes_before_it_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    one_batch = Sending._one_batch

    def deleting_first(self: Sending, batch: Any, gone: set[str]) -> Any:
        self._deleted([dossier.delivery for dossier, _, _ in batch], gone)
        return one_batch(self, batch, gone)

    monkeypatch.setattr(Sending, "_one_batch", deleting_first)
    assert found("I25")


def test_the_checks_notice_a_replay_of_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is made ready whatever it says: the attempt that holds it runs beside the replayed one."""

    def always(self: MemoryOperatorRecords, each: Any, now: Any) -> bool:
        view = self.database.records[each.seen.record]
        self.database.records[view.record] = replace(
            view, status=Status.ACCEPTED, attempts=0, token=None, replays=view.replays + 1
        )
        return True

    monkeypatch.setattr(MemoryOperatorRecords, "_is_reopened", always)
    monkeypatch.setattr("ops.letters.sending.verdict_on", lambda dossier, now, most: Reopen(dossier.death))
    assert found("I14", "I15", "I16", "I19", "G5", seeds=80)


def test_the_runs_notice_a_brake_without_a_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that dies for good leaves the queue paused, and the run never comes to rest."""
    monkeypatch.setattr(Watchdog, "make_round", lambda self: None)

    def run_some() -> None:
        for seed in range(150):
            World(seed).run()

    with pytest.raises(Stuck):
        run_some()


def test_the_checks_notice_a_relay_that_sends_what_the_stream_brings_and_nothing_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def as_brought(self: Relay, worker: str, postings: Any, held: set[str]) -> int:
        return len(self._send(worker, postings))

    monkeypatch.setattr(Relay, "_send_in_order", as_brought)
    assert found("I12")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda _seen, _claim: False,
        lambda seen, claim: claim.reopens is not None and seen.status in OVER and seen.ended_at < claim.reopens,
        lambda seen, claim: claim.reopens is not None and seen.status in OVER and claim.job_id != seen.job_id,
    ],
    ids=["never", "by its time alone", "by its name alone"],
)
def test_the_checks_notice_a_key_that_begins_again_when_it_should_not(
    monkeypatch: pytest.MonkeyPatch, wrong: Any
) -> None:
    monkeypatch.setattr(claim, "_begins_again", wrong)
    assert found("R1.1")


def test_the_checks_notice_a_rescue_that_gives_up_what_an_attempt_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    unended = History.unended

    def as_if_free(self: History, *asked: Any) -> Any:
        return (replace(view, claim_until=None) for view in unended(self, *asked))

    monkeypatch.setattr(History, "unended", as_if_free)
    monkeypatch.setattr(History, "_demand_as_seen", lambda self, view, now: None)
    monkeypatch.setattr("shared.rounds.rescue.MOST_RESCUES", 0)
    monkeypatch.setattr("tests.simulation.history.LOST_AFTER", timedelta(seconds=5))
    assert found("I15")


# Jobs that are split.


def run_until_stuck(seeds: int = 60) -> None:
    for seed in range(seeds):
        World(seed).run()


def test_the_runs_notice_a_last_part_that_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent that does not look when it begins to wait, and that nobody looks at later, waits for ever."""
    monkeypatch.setattr(
        Counting, "look", lambda self, parent: self.parts.look_again(parent, parent.look_at + LOOK_EVERY)
    )
    settle = Counting.settle

    def blind(self: Counting, parent: JobView) -> None:
        """As if the parent's own view, which it has before it is read anew, were no reason to look."""
        if self.parts.view(parent.record) == parent:
            settle(self, parent)

    monkeypatch.setattr(Counting, "settle", blind)
    with pytest.raises(Stuck):
        run_until_stuck()


def test_the_checks_notice_a_parent_that_completes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A count that is brought again after the last end wakes it again, whatever it has become."""

    def waking(self: Counting, parent: JobView) -> None:
        if parent.split is not None and self.parts.tally(parent.split).is_over:
            payload = parent.payload or f'{{"field":"{parent.names["idempotency_key"].partition("/")[2]}","rows":1}}'
            posting = posting_again(replace(parent, payload=payload), self.workers, f"woken/{parent.split.name}")
            assert posting is not None
            self.parts.wake(replace(parent, payload=payload), posting, self.clock.now())

    monkeypatch.setattr(Counting, "settle", waking)

    def always(self: Any, parent: JobView, posting: Any, now: Any) -> None:
        seen = self.records[parent.record]
        self.put_posting(replace(posting, id=f"{posting.id}/{len(self.outbox)}"), now)
        self.decided.add(f"{posting.id}/{len(self.outbox) - 1}")
        self.records[parent.record] = replace(seen, status=Status.RETRYING, not_before=now, payload=parent.payload)
        self._note(parent.record, seen)

    monkeypatch.setattr(History, "wake", always)
    assert found("I14", "I16", "R5.2", seeds=80)


def test_the_checks_notice_a_parent_that_goes_on_before_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tally, "is_over", property(lambda self: self.ended >= self.total - 1))
    assert found("R5.2", seeds=60)


def test_the_checks_notice_a_take_over_that_forgets_the_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would split again what is split, were its items not there already."""
    last = Steps.last.fget  # type: ignore[attr-defined]
    forgotten: set[str] = set()  # once a job, or it would split itself for ever

    def forgetful(self: Steps) -> Any:
        if self.granted.attempt == 1 or self.granted.hold.record in forgotten:
            return last(self)
        forgotten.add(self.granted.hold.record)
        return None

    monkeypatch.setattr(Steps, "last", property(forgetful))
    monkeypatch.setattr(History, "demand", lambda self, write: None)
    assert found("R5.2", "I14", seeds=60)


def test_the_checks_notice_a_step_that_is_written_without_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = MemoryDatabase.checkpoint

    def unfenced(self: Any, hold: Any, asked: Any, now: Any) -> None:
        view = self.records[hold.record]
        fenced = replace(view, status=Status.RUNNING, token=hold.token, checkpoints=asked.number - 1)
        self.records[hold.record] = fenced
        try:
            checkpoint(self, hold, asked, now)
        finally:
            after = self.records[hold.record]
            self.records[hold.record] = replace(after, status=view.status, token=view.token)

    monkeypatch.setattr(MemoryDatabase, "checkpoint", unfenced)
    monkeypatch.setattr(History, "demand", lambda self, write: None)
    assert found("R5.2", "I14", "I16", seeds=80)
