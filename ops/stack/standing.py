"""How a stack stands: queues, rates, breakers and brakes in one look; for the command line and the console alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ops.stack.running import COUNTED
from ops.tables import duration_of, text_of
from shared.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ops.stack.deployed import Deployed
    from ops.tools import Tools
    from shared.rounds.brake import Brake
    from shared.worker import Worker

_Told = TypeVar("_Told")


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
        age, objective = numbers.get("age"), worker.max_latency.total_seconds()
        return {
            "worker": worker.name,
            "waiting": depth.waiting,
            "in_flight": depth.in_flight,
            "delayed": depth.delayed,
            "dead_letters": depth.dead,
            "oldest_s": age,
            "objective_s": objective,
            "is_late": age is not None and age > objective,
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
        "until": text_of(brake.until),
    }


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


def stands(gate: dict[str, Any]) -> str:
    """How a breaker stands, in words."""
    if gate["down_for_s"] is not None:
        wait = f", next look in {duration_of(gate['open_for_s'])}" if gate["open_for_s"] else ", somebody may look"
        return f"down for {duration_of(gate['down_for_s'])}{wait}"
    calls = f"{gate['calls']} calls under way"
    if gate["ramping"]:
        return f"coming back, {calls}"
    return f"up, {calls}" + (f", {gate['failures']} failures in a row" if gate["failures"] else "")
