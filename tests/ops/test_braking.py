"""`tahan pause|resume|drain`: what is noted, told and done, in which order, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ops.exits import Exit
from shared.backends.memory.brakes import MemoryMappings
from shared.errors import Unavailable
from shared.rounds.brake import Brake, BrakeState
from shared.rounds.brake_rounds import Watchdog
from shared.telemetry import Silent
from tests.operated import ME
from tests.ops.desk import Desk
from tests.world import START

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = ("payments", "--why", "migration", "--yes")


def test_a_pause_is_noted_with_its_end_and_the_mapping_stands_still() -> None:
    desk = Desk()
    assert desk.run("pause", *WORDS, "--for", "30m", "--json") == Exit.DONE
    until = START + timedelta(minutes=30)
    assert desk.brakes.read("payments") == Brake(BrakeState.PAUSED, ME, "migration", START, until, by_hand=True)
    assert desk.mapped.running == {"payments": 0}
    assert desk.json == {"worker": "payments", "paused": True, "until": until.isoformat(), "was": None}
    assert [(line["what"], line["why"], line["outcome"]) for line in desk.audit] == [
        ("pause", "migration", "begins"),
        ("pause", "migration", "done"),
    ]


def test_the_watchdog_takes_off_what_an_operator_forgot() -> None:
    desk = Desk()
    desk.run("pause", *WORDS)
    desk.clock.pass_(timedelta(hours=1))
    Watchdog(("payments",), desk.brakes, desk.mapped, desk.clock, Silent()).make_round()
    assert (desk.mapped.running, desk.brakes.read("payments")) == ({"payments": None}, None)


def test_a_pause_that_cannot_be_told_to_lambda_leaves_a_brake_with_an_end() -> None:
    desk = Desk()

    class Stubborn(MemoryMappings):
        def pause(self, worker: str) -> None:
            message = "lambda gave no answer."
            raise Unavailable(message, dependency="lambda")

    desk.mapped = Stubborn()
    assert desk.run("pause", *WORDS) == Exit.NOT_DONE
    brake = desk.brakes.read("payments")
    assert brake is not None
    assert brake.until == START + timedelta(hours=1)
    assert desk.audit[-1]["outcome"] == "broke off"


@pytest.mark.parametrize("command", ["pause", "resume", "drain"])
def test_a_dry_run_changes_nothing_and_asks_nobody(command: str) -> None:
    desk = Desk()
    assert desk.run(command, "payments", "--why", "x", "--dry-run") == Exit.DONE
    assert (desk.mapped.running, desk.brakes.brakes, desk.audit) == ({}, {}, [])


@pytest.mark.parametrize("command", ["pause", "resume", "drain"])
@pytest.mark.parametrize("answer", ["", "n\n", "\n"])
def test_without_a_yes_nothing_is_changed(command: str, answer: str) -> None:
    desk = Desk(stdin=answer)
    assert desk.run(command, "payments", "--why", "x") == Exit.REFUSED
    assert (desk.mapped.running, desk.brakes.brakes, desk.audit) == ({}, {}, [])


@pytest.mark.parametrize("command", ["pause", "resume", "drain"])
def test_without_an_audit_nothing_is_changed(command: str) -> None:
    desk = Desk()
    desk.audit_is_gone = True
    assert desk.run(command, *WORDS) == Exit.NOT_DONE
    assert "the audit cannot be written" in desk.err
    assert (desk.mapped.running, desk.brakes.brakes) == ({}, {})


@pytest.mark.parametrize("time", ["0s", "25h", "1d", "soon", "-1m"])
def test_a_time_that_is_none_or_too_long_is_refused(time: str) -> None:
    desk = Desk()
    assert desk.run("pause", *WORDS, f"--for={time}") == Exit.REFUSED
    assert "give a time like" in desk.err


def test_an_unknown_worker_is_refused() -> None:
    desk = Desk()
    assert desk.run("pause", "shoes", "--why", "x", "--yes") == Exit.REFUSED


def test_a_brake_that_changes_meanwhile_is_left_as_it_is() -> None:
    desk = Desk()
    write = desk.brakes.write
    other = Brake(BrakeState.PAUSED, "shop", "down", START, START)

    class Overtaken:
        read: Callable[[str], Brake | None] = desk.brakes.read

        def write(self, worker: str, brake: Any, seen: Any) -> bool:
            write(worker, other, None)
            return write(worker, brake, seen)

    desk.brakes = Overtaken()  # type: ignore[assignment]
    assert desk.run("pause", *WORDS) == Exit.LEFT
    assert desk.mapped.running == {}


def test_resume_frees_first_and_forgets_then() -> None:
    desk = Desk()
    desk.run("pause", *WORDS)
    assert desk.run("resume", *WORDS, "--json") == Exit.DONE
    assert (desk.mapped.running, desk.brakes.brakes) == ({"payments": None}, {})
    assert desk.json == {"worker": "payments", "was": "paused", "receives": True}


def test_resume_of_what_the_controller_paused_says_that_it_will_come_back() -> None:
    desk = Desk()
    desk.brakes.brakes["payments"] = Brake(BrakeState.PAUSED, "payment-provider", "down", START, START)
    assert desk.run("resume", *WORDS) == Exit.DONE
    assert "payment-provider was down" in desk.err


def overtaken(desk: Desk, command: str) -> tuple[int | None, Brake | None]:
    """How it stands after a command before whose call of Lambda a colleague pauses the worker, or frees it."""

    class Slow(MemoryMappings):
        def run(self, worker: str, concurrency: int | None = None) -> None:
            if command == "resume" and desk.brakes.brakes.get(worker) != COLLEAGUES:
                desk.brakes.brakes[worker] = COLLEAGUES
                super().pause(worker)
            super().run(worker, concurrency)

        def pause(self, worker: str) -> None:
            if command == "pause" and worker in desk.brakes.brakes:
                del desk.brakes.brakes[worker]
                super().run(worker)
            super().pause(worker)

    desk.mapped = Slow(desk.mapped.running)
    desk.run(command, *WORDS)
    return desk.mapped.running.get("payments"), desk.brakes.read("payments")


COLLEAGUES = Brake(BrakeState.PAUSED, "a colleague", "incident", START, START + timedelta(hours=9), by_hand=True)


@pytest.mark.parametrize("is_braked", [True, False])
def test_a_resume_undoes_no_pause_that_was_said_meanwhile(*, is_braked: bool) -> None:
    desk = Desk()
    if is_braked:
        desk.run("pause", *WORDS)
    assert overtaken(desk, "resume") == (0, COLLEAGUES)


def test_a_pause_that_was_overtaken_by_a_resume_leaves_nothing_paused_without_a_brake() -> None:
    assert overtaken(Desk(), "pause") == (None, None)


def test_drain_waits_until_nothing_is_in_flight() -> None:
    desk = Desk()
    desk.running.in_flight = [12, 5, 1, 0, 0, 9]
    assert desk.run("drain", *WORDS, "--json") == Exit.DONE
    assert desk.json["in_flight"] == 0
    assert desk.running.in_flight == [9]  # twice nothing is nothing


def test_drain_gives_up_when_its_time_is_up() -> None:
    desk = Desk()
    desk.running.in_flight = [3] * 50
    assert desk.run("drain", *WORDS, "--timeout", "20") == Exit.UNDER_WAY
    assert "Still in flight" in desk.err
    assert desk.mapped.running == {"payments": 0}
