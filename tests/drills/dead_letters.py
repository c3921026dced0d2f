"""The drill of dead letters: 2,000 of two causes, one repaired. In memory and in virtual time, with the product's own consumer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.table import Table

from ops.letters.dossier import grouped
from ops.letters.replay import CANARY
from ops.letters.report import Report, Stop
from ops.letters.selection import Selection
from ops.letters.verdict import Fate
from shared.failpoints import Failpoint
from shared.job_record import Status
from tests.dead_letters import House
from tests.dying import Killed, dying

if TYPE_CHECKING:
    from rich.console import Console

LETTERS = 2_000
REPAIRED, BROKEN = "provider-was-down", "order-has-no-user"
KILLED_AT = (Failpoint.REOPENED, Failpoint.COPIES_SENT, Failpoint.LETTERS_DELETED)


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that the drill did, and what came of it."""

    step: str
    report: Report | None
    letters: int
    seconds: float


class Drill:
    """One run.

    Attributes:
        each: letters of each of the two causes.
    """

    def __init__(self, each: int) -> None:
        self.each = each
        self.house = House(broken={REPAIRED, BROKEN})
        self.lines: list[Line] = []
        self.signatures: dict[str, str] = {}
        self.names = {cause: [f"{cause}-{number}" for number in range(each)] for cause in (REPAIRED, BROKEN)}

    def play(self) -> None:
        """Let the jobs die, repair one cause, replay.

        Raises:
            AssertionError: something that must hold does not.
        """
        house = self.house
        for first, second in zip(self.names[REPAIRED], self.names[BROKEN], strict=True):
            house.send(first, cause=REPAIRED)
            house.send(second, cause=BROKEN)
        house.work()
        self._note("jobs die", None, 0.0)
        assert len(house.dead()) == 2 * self.each
        groups = grouped(house.desk.look(10 * self.each).dossiers)
        assert {group.reason: group.letters for group in groups} == {REPAIRED: self.each, BROKEN: self.each}
        self.signatures = {group.reason: group.signature for group in groups}
        house.broken.discard(REPAIRED)
        self._replay_what_is_broken()
        for point in KILLED_AT:
            self._kill(point)
        report = self._replay("the repaired group again, to its end", REPAIRED, rate=None)
        assert report.stop is None
        assert report.deaths == 0
        self._check()

    def _replay_what_is_broken(self) -> None:
        ran = len(self.house.ran)
        report = self._replay("the group that is not repaired", BROKEN)
        assert report.stop is Stop.DIED_AGAIN
        assert report.fates[Fate.REPLAYED] == CANARY
        self.house.work()
        assert len(self.house.ran) - ran <= CANARY, "no more than the first ones ran"
        assert len(self.house.dead()) == 2 * self.each, "and they are dead letters again"

    def _kill(self, point: Failpoint) -> None:
        after = max(1, self.each // (300 if point is Failpoint.REOPENED else 50))
        replay = self.house.replaying(Selection(group=self.signatures[REPAIRED]), rate=50.0)
        begun = self.house.clock.monotonic()
        with dying(point, after + 1):
            try:
                replay.run()
            except Killed:
                pass
            else:
                raise AssertionError(point)  # it was not killed
        there = set(self.house.dead()) | set(self.house.effects) | self._on_the_queue()
        assert there == {*self.names[REPAIRED], *self.names[BROKEN]}, "nothing is lost where it was killed"
        self.house.clock.pass_(timedelta(seconds=61))
        self.house.work()  # what was sent is done before anybody replays again
        self._note(f"the repaired group, killed at {point}", replay.report, self.house.clock.monotonic() - begun)

    def _replay(self, step: str, cause: str, **care: float | None) -> Report:
        begun = self.house.clock.monotonic()
        report = self._run(cause, **care)
        self._note(step, report, self.house.clock.monotonic() - begun)
        return report

    def _run(self, cause: str, **care: float | None) -> Report:
        return self.house.replay(Selection(group=self.signatures[cause]), **{"rate": 50.0, **care})

    def _on_the_queue(self) -> set[str]:
        return set(self.house.marks())

    def _check(self) -> None:
        house = self.house
        house.work()
        assert house.effects == dict.fromkeys(self.names[REPAIRED], 1), "each has had its effect, and once"
        assert {house.status(name) for name in self.names[REPAIRED]} == {Status.COMPLETED}
        assert {house.status(name) for name in self.names[BROKEN]} == {Status.DEAD_LETTERED}
        assert sorted(house.dead()) == sorted(self.names[BROKEN]), (
            "nothing is left of the one, nothing lost of the other"
        )
        assert house.visible() == self.each, "nothing is hidden"

    def _note(self, step: str, report: Report | None, seconds: float) -> None:
        self.lines.append(Line(step, report, len(self.house.queue.dead), seconds))


def dead_letters(out: Console, letters: int = LETTERS) -> None:
    """Play the drill, and show it.

    Raises:
        AssertionError: something that must hold does not.
    """
    drill = Drill(letters // 2)
    try:
        drill.play()
    finally:
        table = Table(title=f"{letters} dead letters of two causes, one repaired", title_justify="left")
        for column in (
            "step",
            "replayed",
            "finished",
            "ended well",
            "died again",
            "stopped",
            "letters left",
            "virtual s",
        ):
            table.add_column(column, justify="left" if column in {"step", "stopped"} else "right")
        for line in drill.lines:
            report = line.report or Report()
            table.add_row(
                line.step,
                *(
                    str(count) if line.report else ""
                    for count in (
                        report.fates[Fate.REPLAYED],
                        report.fates[Fate.FINISHED],
                        report.ended.total(),
                        report.deaths,
                    )
                ),
                "" if report.stop is None else report.stop.value,
                str(line.letters),
                f"{line.seconds:.0f}",
            )
        out.print(table)
