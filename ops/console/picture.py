"""The stack as a picture: where each box and line stands. The template draws it; it knows nothing but numbers and words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ops.console.filters import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROW, TOP = 96, 16
BOX_HEIGHT = 76
COLUMNS = {
    "door": (12, 168),
    "outbox": (12, 168),
    "queue": (256, 196),
    "worker": (512, 196),
    "dead": (768, 132),
    "gate": (944, 188),
}
WIDTH = 1144
BUSY, VERY_BUSY = 10, 300  # done in five minutes, from which on messages flow faster


@dataclass(frozen=True, slots=True)
class Box:
    """A box: its heading, lines below it, where it leads, and how grave it looks (nothing, yellow or red)."""

    kind: str
    x: int
    y: int
    width: int
    title: str
    lines: Sequence[str]
    link: str | None = None
    grave: str = ""

    @property
    def middle(self) -> int:
        """Where lines begin and end."""
        return self.y + BOX_HEIGHT // 2


@dataclass(frozen=True, slots=True)
class Flow:
    """A line from box to box; `pace` says how fast messages flow: still, slow, busy or fast."""

    path: str
    pace: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """All of it, and how large it is."""

    boxes: Sequence[Box]
    flows: Sequence[Flow]
    height: int
    width: int = WIDTH
    box_height: int = BOX_HEIGHT


def drawn(
    rows: Sequence[dict[str, Any]], edges: Mapping[str, float], gates: Mapping[str, dict[str, Any]], *, has_door: bool
) -> Picture:
    """The picture of a stack.

    Args:
        rows: its workers, as `tahan status` has them, with `told` and `grave` of whether they receive.
        edges: what the front door took and the outbox gave in five minutes.
        gates: its dependencies: how each stands, in words.
        has_door: whether it has a front door.
    """
    height = TOP + max(len(rows), 2) * ROW
    door = (
        _box("door", height // 2 - ROW, "Front door", [_five("accepted", edges), _five("refused", edges)])
        if has_door
        else None
    )
    outbox = _box(
        "outbox",
        height // 2,
        "Outbox",
        [_five("relayed", edges), f"{number(edges.get('swept'))} swept, {number(edges.get('parked'))} parked"],
        grave="red" if edges.get("parked") else "",
    )
    boxes = [outbox] if door is None else [door, outbox]
    flows = []
    if door is not None:
        middle = door.x + door.width // 2
        flows.append(Flow(f"M{middle} {door.y + BOX_HEIGHT} V{outbox.y}", _pace(edges.get("accepted"))))
    placed = _gates(gates, height)
    for place, row in enumerate(rows):
        queue, worker, dead = own = _of_worker(row, TOP + place * ROW)
        boxes += own
        done = row["succeeded_5m"]
        flows += [
            Flow(_curve(outbox, queue), _pace(done, moving=row["waiting"])),
            Flow(_curve(queue, worker), "still" if row["grave"] else _pace(done, moving=row["in_flight"])),
            Flow(_curve(worker, dead), _pace(row["dead_lettered_5m"]), "bad"),
        ]
        flows += [Flow(_below(worker, placed[name]), "still", "need") for name in row["needs"] if name in placed]
    return Picture([*boxes, *placed.values()], flows, height)


def _of_worker(row: dict[str, Any], y: int) -> tuple[Box, Box, Box]:
    name = row["worker"]
    age = "age not known" if row["oldest_s"] is None else f"oldest {row['oldest_s']:.0f} s of {row['objective_s']:.0f}"
    later = f", {row['delayed']} later" if row["delayed"] else ""
    queue = _box(
        "queue", y, f"{name} queue", [f"{row['waiting']:,} waiting{later}", age], grave="red" if row["is_late"] else ""
    )
    done, retried = (number(row[f"{each}_5m"]) for each in ("succeeded", "retried"))
    worker = _box(
        "worker",
        y,
        name,
        [f"{row['in_flight']:,} in flight, receives: {row['told']}", f"{done} done, {retried} retried in 5 min"],
        link=f"/workers/{name}",
        grave=row["grave"],
    )
    dead = row["dead_letters"]
    lines = ["dead letters" if dead else "no dead letters", f"{number(row['dead_lettered_5m'])} in 5 min"]
    return (
        queue,
        worker,
        _box("dead", y, f"{dead:,}", lines, link=f"/letters?worker={name}", grave="red" if dead else ""),
    )


def _gates(gates: Mapping[str, dict[str, Any]], height: int) -> dict[str, Box]:
    step = height / max(len(gates), 1)
    return {
        name: _box(
            "gate",
            round(step * (place + 0.5) - BOX_HEIGHT / 2),
            name,
            [gate["told"]],
            grave="red" if gate["is_down"] else "",
        )
        for place, (name, gate) in enumerate(gates.items())
    }


def _box(kind: str, y: int, title: str, lines: Sequence[str], *, link: str | None = None, grave: str = "") -> Box:  # noqa: PLR0913 - a box has that many parts
    x, width = COLUMNS[kind]
    return Box(kind, x, y, width, title, lines, link, grave)


def _curve(left: Box, right: Box) -> str:
    begin, end = left.x + left.width, right.x
    half = (begin + end) // 2
    return f"M{begin} {left.middle} C{half} {left.middle} {half} {right.middle} {end} {right.middle}"


def _below(worker: Box, gate: Box) -> str:
    """From a worker under its dead letters to what it needs."""
    low, begin, end = worker.y + BOX_HEIGHT + 8, worker.x + worker.width - 24, gate.x
    turns = [(begin, worker.y + BOX_HEIGHT), (begin, low), (end - 24, low), (end - 24, gate.middle), (end, gate.middle)]
    return f"M{turns[0][0]} {turns[0][1]}" + "".join(f" L{x} {y}" for (_, (x, y)) in pairwise(turns))


def _pace(done: float | None, *, moving: int = 0) -> str:
    if not done and not moving:
        return "still"
    return "slow" if (done or 0) < BUSY else "busy" if (done or 0) < VERY_BUSY else "fast"


def _five(name: str, edges: Mapping[str, float]) -> str:
    return f"{number(edges.get(name))} {name} in 5 min"
