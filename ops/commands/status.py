"""`tahan status`: is work flowing, what waits, what stands still, and which dependencies are down; in one look."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from rich.table import Table

from ops.exits import Exit
from ops.explained import explained
from ops.stack.running import COUNTED
from shared.errors import Unavailable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from ops.stack.deployed import Deployed
    from ops.tools import Tools
    from shared.rounds.brake import Brake
    from shared.worker import Worker

_Told = TypeVar("_Told")
PAUSE = 5.0


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    about = "queues, rates, breakers, and what is paused"
    parser = commands.add_parser("status", help=about, description=about.capitalize(), parents=[everywhere])
    parser.add_argument("worker", nargs="*", metavar="WORKER", help="these only; by default all of the stack")
    parser.add_argument("--watch", action="store_true", help="look again every five seconds, until Ctrl-C")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Show how the stack stands.

    Raises:
        CommandError: there is no such worker, or AWS cannot be asked.
    """
    with explained():
        stack = tools.deployed(options.stack)
    workers = stack.workers(*options.worker)
    while True:
        with explained():
            seen = look(stack, workers, tools)
        if options.json:
            tools.show(seen, as_json=True)
        else:
            _show(seen, tools)
        if not options.watch:
            return Exit.DONE
        tools.clock.sleep(PAUSE)


def look(stack: Deployed, workers: Sequence[Worker], tools: Tools) -> dict[str, Any]:
    """Everything that is told, as JSON has it. What cannot be looked at is None, and said on standard error.

    Raises:
        Unavailable: SQS, Lambda or DynamoDB does not answer.
    """
    running, brakes = tools.running(stack), tools.brakes(stack.jobs_table)
    measured = _or_none(tools, "Ages and rates", lambda: running.measured(workers, tools.clock.now()))
    gates = _or_none(tools, "Breakers", lambda: running.ask_lookout({"look": "gates"})["gates"])

    def row(worker: Worker) -> dict[str, Any]:
        depth, receiving = running.depth(worker.name), running.receiving(worker.name)
        brake = brakes.read(worker.name)
        numbers = (measured or {}).get(worker.name, {})
        return {
            "worker": worker.name,
            "waiting": depth.waiting,
            "in_flight": depth.in_flight,
            "delayed": depth.delayed,
            "dead_letters": depth.dead,
            "oldest_s": numbers.get("age"),
            "objective_s": worker.max_latency.total_seconds(),
            "receives": receiving.state,
            "concurrency": receiving.concurrency,
            "brake": None if brake is None else _brake(brake),
            **{f"{name}_5m": numbers.get(name) for name in COUNTED},
            "needs": [each.name for each in worker.dependencies if each.gate is not None],
        }

    with tools.side_by_side() as mapper:
        rows = list(mapper(row, workers))
    return {"stack": stack.name, "workers": rows, "gates": gates}


def _or_none(tools: Tools, what: str, ask: Callable[[], _Told]) -> _Told | None:
    """What can be done without: metrics and the cache."""
    try:
        return ask()
    except Unavailable as error:
        tools.tell(f"{what} are not known: {error}")
        return None


def _brake(brake: Brake) -> dict[str, Any]:
    return {
        "state": brake.state.value,
        "by": brake.by,
        "why": brake.why,
        "by_hand": brake.by_hand,
        "until": brake.until.isoformat(timespec="seconds"),
    }


def _show(seen: dict[str, Any], tools: Tools) -> None:
    table = Table(box=None, padding=(0, 1, 0, 0))
    for name in ("worker", "waiting", "later", "running", "oldest", "dead", "done", "retried", "postponed", "receives"):
        table.add_column(name, justify="left" if name in {"worker", "receives"} else "right", no_wrap=True)
    for row in seen["workers"]:
        late = row["oldest_s"] is not None and row["oldest_s"] > row["objective_s"]
        table.add_row(
            row["worker"],
            str(row["waiting"]),
            str(row["delayed"]),
            str(row["in_flight"]),
            f"[bold red]{_time(row['oldest_s'])}[/]" if late else _time(row["oldest_s"]),
            f"[bold red]{row['dead_letters']}[/]" if row["dead_letters"] else "0",
            *(_count(row[f"{name}_5m"]) for name in ("succeeded", "retried", "postponed")),
            _receives(row),
        )
    tools.out.print(table)
    for name, gate in (seen["gates"] or {}).items():
        tools.write(f"{name}: {stands(gate)}")
    for row in seen["workers"]:
        if row["brake"] is not None:
            brake = row["brake"]
            tools.write(
                f"{row['worker']} is {brake['state']} until {brake['until']} by {brake['by']}: {brake['why']}."
                f" `tahan resume {row['worker']} --why ...` frees it."
            )


def receives(row: dict[str, Any]) -> tuple[str, str]:
    """Whether a worker receives, in words; and how grave that is: nothing, yellow or red."""
    if row["brake"] is not None:
        # Lambda takes its time; or a deploy has started it.
        if row["brake"]["state"] == "paused" and row["receives"] == "Enabled":
            return "paused, yet enabled", "red"
        return row["brake"]["state"], "yellow"
    if row["receives"] != "Enabled":
        return row["receives"].lower(), "red"
    return ("yes" if row["concurrency"] is None else f"yes ({row['concurrency']})"), ""


def _receives(row: dict[str, Any]) -> str:
    told, colour = receives(row)
    return f"[bold {colour}]{told}[/]" if colour else told


def stands(gate: dict[str, Any]) -> str:
    """How a breaker stands, in words."""
    if gate["down_for_s"] is not None:
        wait = f", next look in {_time(gate['open_for_s'])}" if gate["open_for_s"] else ", somebody may look"
        return f"down for {_time(gate['down_for_s'])}{wait}"
    calls = f"{gate['calls']} calls under way"
    if gate["ramping"]:
        return f"coming back, {calls}"
    return f"up, {calls}" + (f", {gate['failures']} failures in a row" if gate["failures"] else "")


def _count(number: float | None) -> str:
    return "-" if number is None else f"{number:g}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return str(timedelta(seconds=round(seconds)))
