"""Writes docs/capacity.md from what was kept: `python -m benchmarks.capacity.page`. It measures and calculates nothing anew."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from benchmarks.capacity import curves, quotas, validation
from benchmarks.capacity.limits import INDEX_WRITES_OF_A_MESSAGE
from benchmarks.capacity.shape import Origin, shape_of
from benchmarks.capacity.told import duration, number
from infra import prices
from infra.stage.settings import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = ROOT / "docs" / "capacity.md"
SHOWN = (10, 100, 1000, 10_000, 100_000)  # jobs a second, of the tables by worker

MODELLED = (
    "SQS standard queues: batches, window, 120,000 messages in flight; who waits is served in the order of arrival",
    "Lambda's mapping: five invocations at first, five more a second while messages wait, its maximum concurrency or provisioned pollers; cold starts; the quotas of the account",
    "an invocation: its jobs side by side on threads; it ends with the last of them, and only then takes its next batch",
    "DynamoDB on demand: what a new table takes, its growth under load, its quota, and keys that are few: the shards of our two sparse indexes; on wish one hot item and its lock",
    "Valkey Serverless: what an empty cache takes, its growth, and the one hash slot in which the gate of a dependency lies",
    "what a dependency's declaration allows: calls a second, calls at one time",
    "the front door, for jobs that come over HTTP: the throttles of its stage and of the account, its invocations, and the relay before the queue",
    "the relay: shards of the outbox's stream, batches of 100, ten messages a call, marks one after the other",
)
NOT_MODELLED = (
    "refusals: who is throttled waits for its turn; that boto3 repeats the call, or that the job is postponed and spends time in flight, is not drawn",
    "failing jobs: a share of them is reckoned into the messages in flight, and none into the rates",
    "several workers at one time: each curve is a worker alone in its account; tables, cache, relay and account are shared in truth",
    "CPU of a function: more jobs side by side are not slower; memory is as declared",
    "FIFO queues, imports (as large as their file) and the canary",
    "NAT gateways, network interfaces, KMS, X-Ray and CloudWatch: their quotas are far or can be raised, and nobody counted them here",
    "messages that SQS hands out twice, empty receives, mappings that scale back, environments that Lambda takes away",
    "requests of clients that ask how their operation does: each counts against the front door's throttle and the account's concurrency",
    "what provisioned pollers and a cache with a raised least cost",
)


def page() -> str:
    """The page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    known, checked = curves.kept(), validation.kept()
    yield from (
        "# How far it goes",
        "",
        "A **model** of the deployed stack in virtual time, and what it says from 10 to 100,000 jobs a second. Nothing here was measured on AWS.",
        "What a job asks of the stack is counted ([cost.md](cost.md)); what AWS bounds is looked up, with its page beside each number",
        f"([benchmarks/capacity/quotas.py](../benchmarks/capacity/quotas.py), {quotas.AS_OF}); how long a job takes is the assumption of cost.md, spread as jobs are on",
        f"the local stack; prices are those of [infra/prices.py](../infra/prices.py) ({prices.AS_OF}).",
        "",
        "```",
        "make capacity                                                                # the curves, the pictures and this page: about a minute",
        "make capacity ARGS='--rate 500 --worker payments'                            # the plan for one rate",
        "make capacity ARGS='--rate 500 --worker payments --origin front-door --seconds 0.2'",
        "make capacity ARGS=--validate                                                # the model beside the local stack: about seven minutes",
        "```",
        "",
        "## What bounds a worker first",
        "",
        "As declared, and in an account whose quotas nobody has raised. *Then* is what bounds it next, once the first is moved.",
        "",
        "| worker | jobs come | first | jobs a second | moved by | then | jobs a second |",
        "|---|---|---|---|---|---|---|",
    )
    for curve in known["curves"]:
        first, then = curve["ladder"][:2]
        yield (
            f"| {curve['worker']} | {_came(curve)} | {first['name']} | {number(first['jobs'])} | {_cell(first['setting'])} |"
            f" {then['name']} | {number(then['jobs'])} |"
        )
    yield from (
        "",
        "![bounds](pictures/capacity-bounds.png)",
        "",
        "All bounds of all workers below 100,000 jobs a second, the lowest first:",
        "",
        "| bound | lowest for | jobs a second | moved by |",
        "|---|---|---|---|",
        *_bounds(known),
        "",
        "## What a rate needs",
        "",
        "Concurrent invocations: the lower number with full batches, the higher with one job each. A mapping grows only while messages wait, so that it",
        "comes to rest near the lower; a maximum concurrency makes fuller batches, which are cheaper, and jobs wait a little. The plan moves all that can be",
        f"moved to carry the rate and {known['headroom']:.0%} more; an outage of {duration(known['outage'])} is drained by that headroom.",
        "",
        "| worker | jobs a second | concurrency | bounds to be moved, the first of them | oldest after an hour, as declared | oldest under the plan, while it grows | not to be moved | a million, in dollars | outage drained in |",
        "|---|---|---|---|---|---|---|---|---|",
    )
    for curve in known["curves"]:
        if curve["origin"] == "queue":
            yield from (_row(curve["worker"], point) for point in curve["points"] if point["rate"] in SHOWN)
    yield from (
        "",
        "*Never*, and an age that goes towards the hour, stand beside a bound that the plan cannot move; what lies beyond it is another dependency, or another worker",
        "with a queue of its own. The age falls again at the highest rates since provisioned pollers, which the plan takes beyond 1,000 invocations, are there at once.",
        "",
        *_over_http(known),
        "",
        "![concurrency](pictures/capacity-concurrency.png)",
        "",
        "![age](pictures/capacity-age.png)",
        "",
        "![cost and drain](pictures/capacity-cost.png)",
        "",
        "## What jobs wait",
        "",
        f"Up to {curves.DRAWN_TO} jobs a second each job is drawn, over two virtual minutes under the plan; in bursts, all jobs of {curves.BURST_EVERY:g} seconds come at one moment.",
        "",
        "| worker | jobs a second | p95, seconds | p95 in bursts | jobs of a batch | concurrent invocations |",
        "|---|---|---|---|---|---|",
        *_drawn(known),
        "",
        "## The model beside the local stack",
        "",
        f"This is **{checked['label']}**: the product's own consumers in {checked['stack']['consumers']} processes with {checked['stack']['threads']} threads each, our event source mapping, moto's",
        f"server, a real Valkey, and a payment provider that takes {checked['stack']['wait']:g} s. Jobs come open loop. Service times are of one light run of their own",
        f"(mean {checked['calibration']['service']:.3f} s); of the runs below the model knows the rate and the seed of the arrivals.",
        f"It must be within {validation.THROUGHPUT_WITHIN:.0%} of the throughput and",
        f"{validation.P95_WITHIN:.0%} of the 95th percentile, or `--validate` fails. {_machine(checked)}",
        "",
        "| load | jobs a second | jobs | throughput, measured | model | off by | p95 in seconds, measured | model | off by | batch, measured | model |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *(_compared(load) for load in checked["loads"]),
        "",
        "![validation](pictures/capacity-validation.png)",
        "",
        "The closer to saturation, the more the percentile follows small errors of the calibration: at 5.8 jobs a second, runs before this one were off by 2, 19 and",
        "26 % there, so that the load that is kept is a little lower. The stand-in itself slows down with load, which the model does not know.",
        "",
        "The model has two forms with the same bounds: a discrete one that draws each message, batch and job, and a fluid one for rates at which that would take",
        "hours. A test holds them together where both run.",
        "",
        "## What is modelled",
        "",
        *(f"- {line}" for line in MODELLED),
        "",
        "## What is not",
        "",
        *(f"- {line}" for line in NOT_MODELLED),
        "",
        "## The numbers of AWS",
        "",
        "| number | value | what | source |",
        "|---|---|---|---|",
        *(_quota(name, quota) for name, quota in quotas.all_quotas().items()),
    )


def _came(curve: dict[str, Any]) -> str:
    return "to the queue" if curve["origin"] == "queue" else "over HTTP"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _bounds(known: dict[str, Any]) -> Iterator[str]:
    """Each bound once, with the workers for which it is the lowest."""
    found: dict[str, list[tuple[float, str, str, str]]] = {}
    for curve in known["curves"]:
        for limit in curve["ladder"]:
            name = limit["name"].partition(" (")[0]
            found.setdefault(name, []).append((limit["jobs"], curve["worker"], _came(curve), limit["setting"]))
    workers = {curve["worker"] for curve in known["curves"]}
    for name, bounds in sorted(found.items(), key=lambda each: min(each[1])):
        lowest = min(bounds)
        same = [bound for bound in bounds if bound[0] == lowest[0]]
        whose = {bound[1] for bound in same}
        ways = {bound[2] for bound in same}
        named = "all" if whose == workers else ", ".join(sorted(whose))
        if lowest[0] <= SHOWN[-1]:
            came = f" {lowest[2]}" if len(ways) == 1 else ""
            yield f"| {name} | {named}{came} | {number(lowest[0])} | {_cell(lowest[3])} |"


def _over_http(known: dict[str, Any]) -> Iterator[str]:
    """What the front door adds to a job."""
    of = {
        curve["origin"]: point["dollars"]
        for curve in known["curves"]
        for point in curve["points"]
        if curve["worker"] == "payments" and point["rate"] == 1000  # noqa: PLR2004 - one of the rates
    }
    accepted = shape_of(next(worker for worker in curves.all_workers() if worker.name == "payments"), Origin.FRONT_DOOR)
    indexed = accepted.unended_writes + accepted.owner_writes + INDEX_WRITES_OF_A_MESSAGE
    yield (
        f"A million payments that come over HTTP cost {of['front-door']:.2f} dollars at 1,000 a second, and {of['queue']:.2f} where they are sent to the queue:"
    )
    yield (
        f"{indexed * prices.WRITE_UNITS:.2f} of the difference are {indexed:g} writes of sparse indexes for each accepted job, which cost.md does not count."
    )


def _row(worker: str, point: dict[str, Any]) -> str:
    needs = f"{number(point['least'])} to {number(point['most'])}"
    drain = "never" if point["drain"] is None else duration(point["drain"])
    return (
        f"| {worker} | {number(point['rate'])} | {needs} | {_to_be_moved(point)} | {duration(point['oldest'])} |"
        f" {duration(point['planned_oldest'])} | {point['in_the_way'] or '-'} | {point['dollars']:.2f} | {drain} |"
    )


def _to_be_moved(point: dict[str, Any]) -> str:
    return f"{len(point['bounds'])}: {point['bottleneck']}" if point["bounds"] else "none"


def _drawn(known: dict[str, Any]) -> Iterator[str]:
    for curve in known["curves"]:
        for point in curve["points"]:
            if curve["origin"] == "queue" and (drawn := point["drawn"]) is not None:
                yield (
                    f"| {curve['worker']} | {number(point['rate'])} | {drawn['p95']:.2f} | {drawn['p95_bursts']:.2f} |"
                    f" {drawn['batch']:.1f} | {drawn['concurrency']:.1f} |"
                )


def _machine(checked: dict[str, Any]) -> str:
    machine = checked["machine"]
    return (
        f"{checked['date']}, commit {checked['commit'][:7]}, {machine['system']} {machine['processor']} with"
        f" {machine['cores']} cores, Python {machine['python']}."
    )


def _compared(load: dict[str, Any]) -> str:
    return (
        f"| {load['load']} | {load['rate']:g} | {load['jobs']} | {load['throughput']:.2f} | {load['predicted_throughput']:.2f} |"
        f" {load['throughput_error']:.0%} | {load['p95']:.2f} | {load['predicted_p95']:.2f} | {load['p95_error']:.0%} |"
        f" {load['batch']:.1f} | {load['predicted_batch']:.1f} |"
    )


def _quota(name: str, quota: quotas.Quota) -> str:
    source = f"assumed: {quota.source}" if quota.is_assumed else f"[AWS]({quota.source})"
    return f"| {name.lower().replace('_', ' ')} | {number(quota.value)} | {quota.unit} | {source} |"


def main() -> int:
    """Write it."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
