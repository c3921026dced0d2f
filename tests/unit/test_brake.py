"""The queue brake: when a mapping stands still, when a little is let through, and who frees it when its controller is dead."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.backends.mappings import LambdaMappings, Mapped
from shared.backends.memory.brakes import MemoryBrakes, MemoryMappings
from shared.backends.memory.gates import MemoryGates
from shared.dependency import Dependency
from shared.errors import CacheUnavailable, Unavailable
from shared.failpoints import Failpoint, armed
from shared.gate import CircuitBreaker, Gate
from shared.rate import Rate
from shared.rounds.brake import LEAST_CONCURRENCY, Brake, BrakeState, apply, free
from shared.rounds.brake_rounds import HELD, Controller, Watchdog
from shared.telemetry import NO_JOB_TYPE, Silent
from shared.worker import Worker
from tests.world import START, FakeClock, note_job

if TYPE_CHECKING:
    from collections.abc import Callable

MINUTE = timedelta(minutes=1)
GATE = Gate(
    "shop",
    timedelta(seconds=5),
    Rate(100, burst=100),
    breaker=CircuitBreaker(1, timedelta(seconds=30), timedelta(minutes=5), MINUTE),
)


class Case:
    """A worker that does nothing without the shop."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.gates: Any = MemoryGates(self.clock)
        self.brakes, self.mappings, self.telemetry = MemoryBrakes(), MemoryMappings(), Silent()
        self.calls = 0

    @property
    def controller(self) -> Controller:
        return Controller({"notes": [GATE]}, self.gates, self.brakes, self.mappings, self.clock, self.telemetry)

    @property
    def watchdog(self) -> Watchdog:
        return Watchdog(("notes",), self.brakes, self.mappings, self.clock, self.telemetry)

    def call(self, *, served: bool) -> None:
        self.calls += 1
        answer = self.gates.enter(GATE, f"call-{self.calls}", is_retry=False, patience=timedelta(0))
        if isinstance(answer, timedelta):
            self.gates.leave(GATE, f"call-{self.calls}", served=served)

    def pass_minutes(self, number: int, *, controls: bool = True, calls: bool | None = None) -> list[Any]:
        """What the mapping does after each minute; `calls` is how one call goes, made whenever messages are received."""
        seen = []
        for _ in range(number):
            self.clock.pass_(MINUTE)
            if calls is not None and self.running != 0:
                self.call(served=calls)
            if controls:
                self.controller.make_round()
            self.watchdog.make_round()
            seen.append(self.running)
        return seen

    @property
    def running(self) -> int | None:
        return self.mappings.running.get("notes")


def test_a_short_trouble_brakes_nothing() -> None:
    case = Case()
    case.call(served=False)
    assert case.pass_minutes(1) == [None]
    case.call(served=True)
    assert case.pass_minutes(5) == [None] * 5
    assert case.mappings.running == {}


def test_a_long_outage_pauses_lets_a_little_through_to_look_and_frees_after_a_look_that_is_served() -> None:
    case = Case()
    case.call(served=False)
    outage = case.pass_minutes(30, calls=False)
    assert outage[1] == 0
    assert set(outage[1:]) == {0, LEAST_CONCURRENCY}
    assert outage.count(0) >= 3 * outage.count(LEAST_CONCURRENCY)
    recovery = case.pass_minutes(12, calls=True)
    assert recovery[-1] is None
    assert case.brakes.brakes == {}
    assert recovery.index(None) <= 9


def test_i47_each_step_is_counted_and_told() -> None:
    case = Case()
    case.call(served=False)
    case.pass_minutes(10, calls=False)
    case.pass_minutes(12, calls=True)
    counts = {name for (name, job_type) in case.telemetry.counts if job_type == NO_JOB_TYPE}
    assert counts == {"queue_paused", "queue_looking", "queue_freed"}
    assert {fields["dependency"] for _, fields in case.telemetry.warnings} == {"shop"}


def test_a_worker_is_braked_by_what_every_job_type_of_it_needs_and_by_nothing_else() -> None:
    shop = Dependency("shop", timeout=timedelta(seconds=5), rate=Rate(1), breaker=CircuitBreaker())
    plain = Dependency("plain", timeout=timedelta(seconds=5))
    one, two = note_job(uses=(shop, plain)), note_job(uses=(shop,))
    other: Any = note_job(uses=())
    assert Worker("w", jobs=(one,)).needs == (shop,)
    object.__setattr__(two, "name", "two")
    object.__setattr__(other, "name", "other")
    assert Worker("w", jobs=(one, two)).needs == (shop,)
    assert Worker("w", jobs=(one, two, other)).needs == ()


def test_a_controller_that_dies_for_good_leaves_nothing_paused() -> None:
    case = Case()
    case.call(served=False)
    case.pass_minutes(2, calls=False)
    assert case.running == 0
    left = case.pass_minutes(6, controls=False)
    assert left[-1] is None
    assert left.index(None) <= HELD // MINUTE
    assert case.brakes.brakes == {}
    assert case.telemetry.counts["brake_ended", NO_JOB_TYPE] == 1


@pytest.mark.parametrize("point", [Failpoint.BRAKE_NOTED, Failpoint.BRAKE_FREED])
@pytest.mark.parametrize("controls", [True, False], ids=["runs-again", "dies-for-good"])
def test_wherever_the_controller_dies_the_mapping_runs_in_the_end(point: Failpoint, *, controls: bool) -> None:
    case = Case()
    case.call(served=False)
    case.pass_minutes(2 if point is Failpoint.BRAKE_FREED else 1)
    if point is Failpoint.BRAKE_FREED:
        case.clock.pass_(MINUTE)
        case.call(served=True)

    def dies(passed: Failpoint) -> None:
        if passed is point:
            raise KeyboardInterrupt

    case.clock.pass_(MINUTE)
    with armed(dies), pytest.raises(KeyboardInterrupt):
        case.controller.make_round()
    case.call(served=True)
    case.pass_minutes(12, controls=controls, calls=True)
    assert case.running is None
    assert case.brakes.brakes == {}


def test_a_deploy_that_starts_the_mapping_is_put_right_by_the_next_round() -> None:
    case = Case()
    case.call(served=False)
    case.pass_minutes(2)
    case.mappings.run("notes")
    assert case.pass_minutes(1) == [0]


def test_while_redis_is_gone_nothing_new_is_braked_and_what_is_braked_is_freed_by_its_end() -> None:
    case = Case()
    case.call(served=False)
    case.pass_minutes(3)

    class Gone:
        def look(self, gate: Gate) -> Any:
            raise CacheUnavailable

    case.gates = Gone()
    assert case.pass_minutes(6)[-1] is None


def test_a_brake_set_by_hand_is_left_alone_until_its_time_is_up() -> None:
    case = Case()
    by_hand = Brake(BrakeState.PAUSED, "arn:someone", "migration", START, START + 10 * MINUTE, by_hand=True)
    case.brakes.write("notes", by_hand, None)
    case.mappings.pause("notes")
    assert case.pass_minutes(9) == [0] * 9
    assert case.pass_minutes(1) == [None]


def test_two_controllers_at_once_agree() -> None:
    case = Case()
    case.call(served=False)
    case.clock.pass_(2 * MINUTE)

    def overtaken(worker: str) -> Brake | None:
        found = case.brakes.read(worker)
        case.controller.make_round()
        case.clock.pass_(timedelta(seconds=1))
        return found

    late: Any = Late(case.brakes, overtaken)
    Controller({"notes": [GATE]}, case.gates, late, case.mappings, case.clock, case.telemetry).make_round()
    assert case.running == 0
    assert case.telemetry.counts["queue_paused", NO_JOB_TYPE] == 1


class Meanwhile(MemoryMappings):
    """Lambda's API that is slow: something is done by others before the next pause or run takes effect."""

    others: Callable[[], object] | None = None

    def _happens(self) -> None:
        others, self.others = self.others, None
        if others is not None:
            others()

    def pause(self, worker: str) -> None:
        self._happens()
        super().pause(worker)

    def run(self, worker: str, concurrency: int | None = None) -> None:
        self._happens()
        super().run(worker, concurrency)


def braked(case: Case, brake: Brake) -> None:
    """What an operator's pause does."""
    assert case.brakes.write("notes", brake, case.brakes.read("notes"))
    apply(case.brakes, case.mappings, "notes", brake)


def resumed(case: Case) -> None:
    """What an operator's resume does."""
    seen = case.brakes.read("notes")
    assert seen is not None
    assert free(case.brakes, case.mappings, "notes", seen)


BY_HAND = Brake(BrakeState.PAUSED, "arn:someone", "migration", START, START + 600 * MINUTE, by_hand=True)


def test_a_resume_that_overtakes_the_controllers_pause_leaves_nothing_paused_without_a_brake() -> None:
    case = Case()
    case.mappings = mappings = Meanwhile()
    case.call(served=False)
    case.clock.pass_(3 * MINUTE)
    mappings.others = lambda: resumed(case)
    case.controller.make_round()
    assert (case.running, case.brakes.read("notes")) == (None, None)


def test_what_lambda_refuses_to_free_so_soon_after_a_pause_the_watchdog_frees() -> None:
    case = Case()

    class Busy(Meanwhile):
        def run(self, worker: str, concurrency: int | None = None) -> None:
            if self.running.get(worker) == 0:
                message = "it is being paused"
                raise Unavailable(message, dependency="lambda")
            super().run(worker, concurrency)

    case.mappings = mappings = Busy()
    case.call(served=False)
    case.clock.pass_(3 * MINUTE)
    mappings.others = lambda: resumed(case)
    with pytest.raises(Unavailable):
        case.controller.make_round()
    case.mappings = MemoryMappings(mappings.running)
    assert case.running == 0
    assert case.pass_minutes(1, controls=False) == [None]
    assert case.brakes.brakes == {}


def test_a_controllers_pause_that_overtakes_a_resume_leaves_nothing_paused_without_a_brake() -> None:
    case = Case()
    case.call(served=False)
    case.pass_minutes(3)
    noted = case.brakes.read("notes")

    class Late(MemoryMappings):
        is_overtaken = False

        def run(self, worker: str, concurrency: int | None = None) -> None:
            super().run(worker, concurrency)
            if not self.is_overtaken:
                self.is_overtaken = True
                apply(case.brakes, case.mappings, worker, noted)

    case.mappings = Late(case.mappings.running)
    resumed(case)
    assert (case.running, case.brakes.read("notes")) == (None, None)


@pytest.mark.parametrize("point", [Failpoint.BRAKE_NOTED, Failpoint.BRAKE_FREED])
def test_a_resume_that_dies_is_brought_to_its_end_by_the_watchdog_at_once(point: Failpoint) -> None:
    case = Case()
    braked(case, BY_HAND)

    def dies(passed: Failpoint) -> None:
        if passed is point:
            raise KeyboardInterrupt

    with armed(dies), pytest.raises(KeyboardInterrupt):
        resumed(case)
    assert case.pass_minutes(1) == [None]
    assert case.brakes.brakes == {}


def test_while_a_worker_is_being_freed_its_controller_brakes_it_anew() -> None:
    case = Case()
    case.call(served=False)
    case.pass_minutes(3)
    seen = case.brakes.read("notes")
    assert seen is not None
    case.brakes.brakes["notes"] = replace(seen, state=BrakeState.FREED)
    case.controller.make_round()
    assert (case.running, case.brakes.brakes["notes"].state) == (0, BrakeState.PAUSED)


def test_a_pause_by_hand_that_overtakes_the_controllers_freeing_holds() -> None:
    case = Case()
    case.mappings = mappings = Meanwhile()
    case.call(served=False)
    case.pass_minutes(3)
    case.clock.pass_(MINUTE)
    case.call(served=True)
    mappings.others = lambda: braked(case, BY_HAND)
    case.controller.make_round()
    assert (case.running, case.brakes.read("notes")) == (0, BY_HAND)
    assert ("queue_freed", NO_JOB_TYPE) not in case.telemetry.counts


def test_a_pause_by_hand_that_overtakes_the_watchdog_holds() -> None:
    case = Case()
    case.mappings = mappings = Meanwhile()
    case.call(served=False)
    case.pass_minutes(3)
    case.clock.pass_(HELD)
    mappings.others = lambda: braked(case, BY_HAND)
    case.watchdog.make_round()
    assert (case.running, case.brakes.read("notes")) == (0, BY_HAND)
    assert ("brake_ended", NO_JOB_TYPE) not in case.telemetry.counts


class Late:
    """Brakes of a controller that is overtaken between its look and its write."""

    def __init__(self, brakes: MemoryBrakes, read: Callable[[str], Brake | None]) -> None:
        self.write, self.read = brakes.write, read


def test_one_worker_that_cannot_be_braked_keeps_no_other_from_it() -> None:
    case = Case()

    class Stubborn(MemoryMappings):
        def pause(self, worker: str) -> None:
            if worker == "first":
                raise Unavailable("busy", dependency="lambda")
            super().pause(worker)

    case.mappings = Stubborn()
    case.call(served=False)
    case.clock.pass_(3 * MINUTE)
    needs = {"first": [GATE], "notes": [GATE]}
    controller = Controller(needs, case.gates, case.brakes, case.mappings, case.clock, case.telemetry)
    with pytest.raises(Unavailable):
        controller.make_round()
    assert case.running == 0


class Recorded:
    """Lambda's API, as far as it is used."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def update_event_source_mapping(self, **asked: Any) -> None:
        self.asked.append(asked)


def test_a_mapping_is_paused_and_run_by_its_id_and_nothing_else_of_it_is_changed() -> None:
    recorded = Recorded()
    mappings = LambdaMappings(recorded, {"notes": Mapped.read("some-uuid 20")})
    mappings.pause("notes")
    mappings.run("notes", 2)
    mappings.run("notes")
    assert recorded.asked == [
        {"UUID": "some-uuid", "Enabled": False},
        {"UUID": "some-uuid", "Enabled": True, "ScalingConfig": {"MaximumConcurrency": 2}},
        {"UUID": "some-uuid", "Enabled": True, "ScalingConfig": {"MaximumConcurrency": 20}},
    ]
