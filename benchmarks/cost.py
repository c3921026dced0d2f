"""What a million jobs cost, worker by worker: counted calls times published prices. `python -m benchmarks.cost` writes docs/cost.md."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cost_counts import COUNTS, count_all, kept
from functions.registry import WORKERS
from infra import prices
from infra.alarms.page import billed, groups
from infra.alarms.queues import Deployed
from infra.alarms.worker import worker_alarms
from infra.plan import Plan
from infra.prices import MILLION
from infra.stage.alarm_settings import AlarmSettings
from infra.stage.settings import ROOT, load_stage
from local.processes.children import Children
from local.stack.valkey import Valkey
from tests.aws import CREDENTIALS
from tests.moto_server import MotoServer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PAGE = ROOT / "docs" / "cost.md"
HOURS = 730  # of a month
BATCHES = (10, 1)  # jobs that one invocation has: a busy queue, and one on which each comes alone
# How long an invocation lasts, in seconds: an assumption, to be replaced by what your dashboard shows.
LASTS = {"payments": 0.5, "notifications": 0.5, "inventory": 0.5}
SHORT = 0.1
POLLERS, POLL_SECONDS = (
    5,
    20,
)  # of Lambda on an idle queue; each asks so often (Lambda developer guide, SQS event sources)
MINUTELY = 2  # functions that run every minute: sweeper and lookout
MEMORY = {worker.name: worker.memory / 1024 for worker in WORKERS}


def of_a_million(worker: str, counted: Mapping[str, Any], batch: float, lasts: float | None = None) -> dict[str, float]:
    """Dollars for a million successful jobs of a worker, by what they are for; an invocation `lasts` so many seconds."""
    calls = counted["calls"]
    # The producer's own send, what the job itself asks, and the mapping's receive and delete, one of each a batch.
    requests = calls.get("SendMessage", 0) + calls.get("ChangeMessageVisibility", 0) + 2 / batch
    invocations = 1 / batch
    seconds = (LASTS.get(worker, SHORT) if lasts is None else lasts) / batch
    logs = counted["log_bytes"] / 1e9 * MILLION
    return {
        "Lambda": invocations * prices.INVOCATIONS + MILLION * seconds * MEMORY[worker] * prices.GB_SECOND["arm64"],
        "SQS": requests * prices.SQS_REQUESTS,
        "DynamoDB": counted["write_units"] * prices.WRITE_UNITS + counted["read_units"] * prices.READ_UNITS,
        "Valkey": counted["exchanges"] * prices.CACHE_UNITS,
        "logs": logs * prices.LOGS_GB,
        "traces": invocations * prices.TRACED_SHARE * prices.TRACES,
    }


def of_a_month() -> dict[str, float]:
    """Dollars for a month of the stack of dev in which nothing happens."""
    stage = load_stage("dev")
    polls = POLLERS * HOURS * 3600 / POLL_SECONDS * len(WORKERS)
    ticks = MINUTELY * 60 * HOURS
    return {
        f"{stage.nat_gateways} NAT gateway (none if no worker calls outside)": stage.nat_gateways
        * HOURS
        * prices.NAT_HOUR,
        f"endpoint of SQS in {stage.availability_zones} zones": stage.availability_zones * HOURS * prices.ENDPOINT_HOUR,
        "Valkey Serverless, at its least": prices.CACHE_LEAST_GB * HOURS * prices.CACHE_GB_HOUR,
        f"polls of {len(WORKERS)} idle queues": polls / MILLION * prices.SQS_REQUESTS,
        "sweeper and lookout, each a second a minute": ticks
        * (prices.INVOCATIONS / MILLION + 0.25 * prices.GB_SECOND["arm64"]),
        "a canary a minute, through the outbox": _of_the_canary(),
        "alarms": _of_the_alarms(),
        "the key": prices.KEY_MONTH,
        "the dashboard": prices.DASHBOARD_MONTH,
    }


def _of_the_canary() -> float:
    """Its jobs, the message's way through the outbox (written, read by the relay, marked, sent), and its metrics."""
    counted = kept()["canary"]
    relayed = prices.INVOCATIONS + MILLION * SHORT * 0.25 * prices.GB_SECOND["arm64"]
    outbox = 2 * prices.WRITE_UNITS + prices.SQS_REQUESTS
    each = sum(of_a_million("canary", counted, 1).values()) + relayed + outbox
    metrics: float = counted["metrics"] * prices.METRIC_MONTH
    total: float = 60 * HOURS / MILLION * each + metrics
    return total


def _of_the_alarms() -> float:
    """All alarms of the stack without a front door."""
    names = Deployed("source", "dead-letters", "function")
    of = {title: billed(alarms) for title, alarms in groups(WORKERS[0], AlarmSettings()).items()}
    tables = of.pop("Every other table") * (1 + len(Plan(load_stage("dev"), WORKERS).tables))  # with the outbox
    workers = sum(billed(worker_alarms(worker, names, AlarmSettings())) for worker in WORKERS)
    return workers + tables + sum(cost for title, cost in of.items() if title not in {"A worker", "The front door"})


def page() -> str:
    """The page."""
    counts = kept()
    lines = [
        "# What it costs",
        "",
        f"Prices of us-east-1 as of {prices.AS_OF} ([infra/prices.py](../infra/prices.py)), without free tiers and without tax. Calls are counted:",
        "the product's own consumers ran one job of each worker on moto and a real Valkey ([benchmarks/cost.json](../benchmarks/cost.json)), and a test counts them again.",
        "How long an invocation lasts is assumed. `python -m benchmarks.cost` counts anew and writes this page.",
        "",
        "## What one successful job asks for",
        "",
        "| worker | job | DynamoDB calls | write units | read units | exchanges with Redis | bytes of logs |",
        "|---|---|---|---|---|---|---|",
    ]
    for worker, counted in counts.items():
        asked = {
            name: n for name, n in counted["calls"].items() if name not in {"SendMessage", "ChangeMessageVisibility"}
        }
        calls = ", ".join(f"{name} {n}" for name, n in asked.items())
        lines.append(
            f"| {worker} | {counted['job_type']} | {calls} | {counted['write_units']:g} | {counted['read_units']:g} |"
            f" {counted['exchanges']} | {counted['log_bytes']} |"
        )
    for batch in BATCHES:
        lines += [
            "",
            f"## A million jobs, {'ten of them in a batch' if batch > 1 else 'each alone in its batch'}, in dollars",
            "",
            "| worker | Lambda | SQS | DynamoDB | Valkey | logs | traces | sum |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for worker, counted in counts.items():
            parts = of_a_million(worker, counted, batch)
            cells = " | ".join(f"{value:.2f}" for value in parts.values())
            lines.append(f"| {worker} | {cells} | {sum(parts.values()):.2f} |")
    month = of_a_month()
    metrics = [counted["metrics"] for counted in counts.values()]
    written = f"{min(metrics)} to {max(metrics)}"
    lines += [
        "",
        f"An invocation of {', '.join(sorted(LASTS))} lasts {max(LASTS.values()):g} s here, since they wait for an outside system, and of the others {SHORT:g} s;",
        f"jobs of a batch run side by side. A job that came over HTTP costs besides: ${prices.API_REQUESTS:.2f} a million for API Gateway, one invocation of the front door, a",
        "transaction of two items (4 write units), and the relay's send and mark (1 request, 1 unit). A duplicate costs its claim and no commit.",
        "",
        "## A month in which nothing happens, in dollars",
        "",
        "| for | |",
        "|---|---|",
        *(f"| {name} | {value:.2f} |" for name, value in month.items()),
        f"| sum | {sum(month.values()):.2f} |",
        "",
        f"Each further metric of ours costs ${prices.METRIC_MONTH:.2f} in a month in which it was written: a successful job writes {written},",
        "however many jobs there are",
        "([metrics.md](reference/metrics.md) lists all; [alarms.md](reference/alarms.md) what each alarm costs).",
    ]
    return "\n".join(lines) + "\n"


def main(words: Sequence[str]) -> int:
    """Count, keep, and write the page; or write the page alone, over what is kept."""
    if "--page" not in words:
        _count()
    PAGE.write_text(page(), encoding="utf-8")
    return 0


def _count() -> None:
    os.environ.update(CREDENTIALS)
    server = MotoServer()
    server.start()
    os.environ["AWS_ENDPOINT_URL"] = server.endpoint
    with tempfile.TemporaryDirectory() as folder, Children() as children:
        valkey = Valkey(children, Path(folder) / "valkey")
        valkey.start()
        counts = count_all(valkey)
    server.stop()
    COUNTS.write_text(f"{json.dumps(counts, indent=1)}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
