"""The renewing thread: one at a time, ending with its invocation, telling what it could not renew."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from shared.errors import SettingsError
from shared.pipeline.keeper import IDLE, Keeper
from shared.telemetry import Silent

if TYPE_CHECKING:
    import pytest


@dataclass(eq=False)
class Held:
    """Something kept, whose renewal may hang or raise."""

    error: Exception | None = None
    hangs: threading.Event | None = None
    asked: threading.Event = field(default_factory=threading.Event)
    lost: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)
    due: float = 0.0

    def due_in(self) -> float:
        return self.due

    def renew(self) -> float:
        self.threads.append(threading.current_thread())
        self.asked.set()
        if self.hangs is not None:
            self.hangs.wait(30)
        if self.error is not None:
            raise self.error
        return IDLE


class Waiting(threading.Condition):
    """A condition that counts whom it wakes, and tells when somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.woken = 0
        self.waited_for = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.waited_for.set()
        return super().wait(timeout)

    def notify_all(self) -> None:
        self.woken += 1
        super().notify_all()


def test_a_renewal_that_hangs_beyond_its_invocation_renews_nothing_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.pipeline.keeper.LAST_RENEWAL", timedelta(0))  # the invocation does not wait for it
    keeper = Keeper(Silent())
    stuck = Held(hangs=threading.Event())
    with keeper:
        keeper.keep(stuck)
        assert stuck.asked.wait(10)
    assert stuck.lost.is_set()
    (old,) = stuck.threads
    with keeper:
        assert stuck.hangs is not None
        stuck.hangs.set()
        old.join(10)
        assert not old.is_alive()  # it does not go on in this invocation
        fresh = Held()
        keeper.keep(fresh)
        assert fresh.asked.wait(10)
        assert old not in fresh.threads


def test_what_is_kept_while_others_are_renewed_is_not_overlooked() -> None:
    keeper = Keeper(Silent())
    late = Held()

    class Keeping(Held):
        def renew(self) -> float:
            if not self.asked.is_set():
                keeper.keep(late)  # the thread does not wait now, and is not woken by this
            return super().renew()

    with keeper:
        keeper.keep(Keeping())
        assert late.asked.wait(10)


def test_what_is_kept_while_the_thread_looks_is_looked_at_although_it_is_due_late() -> None:
    keeper = Keeper(Silent())
    keeper._changed = changed = Waiting()
    late = Held(due=IDLE + 1)

    class Keeping(Held):
        def renew(self) -> float:
            keeper.keep(late)
            return super().renew()

    with keeper:
        assert changed.waited_for.wait(10)
        keeper.keep(Keeping())
        assert late.asked.wait(10)


def test_a_renewal_that_raises_is_told_and_loses_its_holder() -> None:
    telemetry = Silent()
    keeper = Keeper(telemetry)
    bug, setting = Held(RuntimeError("a canary")), Held(SettingsError("set it"))
    keeper.keep(bug)
    keeper.keep(setting)
    keeper.renew_due()
    assert bug.lost.is_set()
    assert setting.lost.is_set()
    assert telemetry.warnings == [
        ("renewal_failed", {"error": "RuntimeError"}),
        ("renewal_failed", {"error": "SettingsError"}),
    ]


def test_what_is_due_after_the_threads_next_look_does_not_wake_it_and_what_is_due_before_does() -> None:
    keeper = Keeper(Silent())
    keeper._changed = changed = Waiting()
    late, soon = Held(due=IDLE + 1), Held(due=1.0)
    with keeper:
        assert changed.waited_for.wait(10)
        with changed:  # it waits now, and so has said for how long
            pass
        keeper.keep(late)
        assert changed.woken == 0
        keeper.keep(soon)
        assert changed.woken == 1
        assert soon.asked.wait(10)
        assert late.asked.wait(10)  # whoever looks, looks at all
