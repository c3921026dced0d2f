"""Hundreds of unreliable clients before the front door (I1, I2, I16, I26 from outside): the history is checked when all is at rest.

`python -m tests.clients SEEDS CLIENTS` runs more.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.memory.database import MemoryDatabase
from shared.job_record import Status
from tests.clients.books import Audit
from tests.clients.world import ClientWorld
from tests.modes import Mode
from tests.simulation.history import History, Violation
from tests.simulation.scheduler import Stuck

if TYPE_CHECKING:
    from shared.job_record import JobView


def run(seed: int, clients: int, mode: Mode = Mode.NORMAL) -> ClientWorld:
    world = ClientWorld(seed, clients, mode)
    world.run()
    assert len(Audit(world).all()) == 13
    return world


@pytest.mark.timeout(300)
def test_i2_five_hundred_clients_have_one_job_for_each_intent_and_every_operation_ends() -> None:
    world = run(2, 500)
    assert len({call.owner for call in world.books.calls}) == 500
    asked = Counter((call.kind, call.status) for call in world.books.calls)
    for kind, status in [
        ("post", 202),
        ("post", None),
        ("post", 429),
        ("post", 503),
        ("other payload", 422),
        ("foreign post", 404),
        ("get", 200),
        ("get", 429),
        ("foreign get", 404),
        ("foreign delete", 404),
        ("delete", 200),
        ("delete", 409),
        ("list", 200),
    ]:
        assert asked[kind, status], f"{kind} was never answered with {status}"
    statuses = {view.status for view in world.history.records.values()}
    assert statuses >= {Status.COMPLETED, Status.CANCELLED, Status.DEAD_LETTERED}
    replayed = [call for call in world.books.of("post") if call.replayed]
    assert len(replayed) > 100


@pytest.mark.parametrize("mode", list(Mode))
def test_the_promises_to_clients_hold_in_every_weather(mode: Mode) -> None:
    fired: Counter[str] = Counter()
    for seed in range(8):
        fired.update(run(seed, 40, mode).faults.fired)
    assert {"answer_lost", "dies_before", "dies_after", "reply_lost", "not_done", "slow", "unstreamed"} <= set(fired)


def test_a_seed_is_repeated_bit_for_bit() -> None:
    first, second = run(7, 30), run(7, 30)
    assert first.books.calls == second.books.calls
    assert first.scheduler.switches == second.scheduler.switches


def is_found(*promises: str) -> bool:
    """Whether some run breaks one of these promises."""
    for seed in range(20):
        world = ClientWorld(seed, 40)
        try:
            world.run()
            Audit(world).all()
        except (Violation, Stuck) as error:
            if str(error).partition(":")[0] in promises:
                return True
    return False


def test_the_audit_notices_a_key_that_is_accepted_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    accept = MemoryDatabase.accept

    def forgetful(self: MemoryDatabase, acceptance: Any, now: Any) -> Any:
        self.records.pop(acceptance.record, None)
        return accept(self, acceptance, now)

    monkeypatch.setattr(MemoryDatabase, "accept", forgetful)
    assert is_found("I2", "API9", "I16")  # another payload comes in, or a status goes back


def test_the_audit_notices_a_status_that_was_read_from_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that lags shows what a client has seen to be over."""
    view = History.view

    def lagging(self: History, record: str) -> JobView | None:
        now = view(self, record)
        before = [change for name, change in self.changes if name == record]
        return before[-2] if now is not None and len(before) > 1 and len(self.changes) % 3 == 0 else now

    monkeypatch.setattr(History, "view", lagging)
    assert is_found("I16")


def test_the_audit_notices_an_effect_that_its_status_denies() -> None:
    world = run(3, 30)
    records = world.history.records
    done = next(record for record in world.history.accepted_at if records[record].status is Status.COMPLETED)
    records[done] = replace(records[done], status=Status.CANCELLED)
    with pytest.raises(Violation, match=r"R3\.6: cancelled and charged"):
        Audit(world).r3_6_the_effect_agrees_with_the_status()
