"""`tahan deploy-check`: what a deploy of this code would do to a stack, and whether it runs as it was deployed. It changes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ops import ROOT
from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.stack.comparison import compared
from ops.tables import add_row, table_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from ops.stack.comparison import Comparison
    from ops.stack.deployed import Deployed
    from ops.tools import Tools

ENABLED = "Enabled"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    about = "compare a deployed stack with this code: what a deploy would do, and what runs otherwise than deployed"
    parser = commands.add_parser("deploy-check", help=about, description=about.capitalize(), parents=[everywhere])
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--stage", help="of cdk.json, to synthesise; by default the one that the stack is tagged with")
    source.add_argument("--assembly", metavar="DIR", help="what was synthesised already (cdk.out)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Compare and show.

    Raises:
        CommandError: there is no such stack, this code cannot be synthesised, or AWS does not answer.
    """
    with explained():
        stack = tools.deployed(options.stack)
        deployed = tools.template(stack.name)
    if options.assembly is None:
        stage = options.stage or stack.stage
        with tools.busy(f"Synthesising {stage} ..."):
            folder = tools.assembly(stage)
    else:
        folder = Path(options.assembly)
    wanted = _template_in(folder, stack.name)
    comparison = compared(deployed, wanted)
    with explained():
        waiting = {name: number for name in comparison.workers if (number := _messages(stack, name, tools))}
        drifts = [*_drifts(stack, tools), *_kept_parameters(stack, wanted)]
    _show(comparison, waiting, drifts, tools, as_json=options.json)
    if comparison.harms or waiting:
        return Exit.HARMFUL
    return Exit.DONE if comparison.is_same and not drifts else Exit.DIFFERS


def synthesised(stage: str) -> Path:
    """The assembly of a stage of this code.

    Raises:
        CommandError: it cannot be synthesised, with the reason.
    """
    command = [sys.executable, "-m", "infra.assembly", stage]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if ran.returncode:
        raise CommandError(ran.stderr.strip(), Exit.REFUSED)
    return Path(ran.stdout.splitlines()[-1])


def _template_in(folder: Path, stack: str) -> Any:  # noqa: ANN401 - JSON
    file = folder / f"{stack}.template.json"
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        known = sorted(path.name.removesuffix(".template.json") for path in folder.glob("*.template.json"))
        message = f"{folder} holds no template of {stack} (it holds {', '.join(known) or 'none'}): name its --stage."
        raise CommandError(message, Exit.REFUSED) from error


def _messages(stack: Deployed, worker: str, tools: Tools) -> int:
    """How many messages a worker's queues hold, dead letters among them."""
    depth = tools.running(stack).depth(worker)
    return depth.waiting + depth.in_flight + depth.delayed + depth.dead


def _kept_parameters(stack: Deployed, wanted: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Parameters that a deploy would leave as they are, whatever cdk.json says by now: the CDK keeps the values of before."""
    for name, parameter in wanted.get("Parameters", {}).items():
        value = stack.parameters.get(name)
        default = parameter.get("Default")
        if None not in {value, default} and value != default:
            yield f"parameter {name} is {value!r}, this code says {default!r}: give it by --parameters, or it stays"


def _drifts(stack: Deployed, tools: Tools) -> Iterator[str]:
    """What people or brakes have changed since the deploy."""
    running = tools.running(stack)
    if not stack.status.endswith("_COMPLETE") or "ROLLBACK" in stack.status:
        yield f"the stack is {stack.status}: its last deploy is under way, or did not succeed"
    for name, function in stack.consumers.items():
        if weights := running.weights(function):
            shares = ", ".join(f"{share:.0%} by version {version}" for version, share in weights.items())
            yield f"worker {name} is between two versions ({shares}): a rollout is under way, or was left"
    for worker in stack.workers():
        receiving = running.receiving(worker.name)
        declared = stack.mapping_of(worker.name).concurrency
        if receiving.state != ENABLED:
            yield f"worker {worker.name} receives nothing: its mapping is {receiving.state} (`tahan status`)"
        elif receiving.concurrency != declared:
            yield f"worker {worker.name} runs {receiving.concurrency} batches at one time, and {declared} were deployed"


def _show(comparison: Comparison, waiting: dict[str, int], drifts: list[str], tools: Tools, *, as_json: bool) -> None:
    if as_json:
        changes = [
            {"resource": each.name, "type": each.kind, "deed": each.deed, "parts": list(each.parts)}
            for each in comparison.changes
        ]
        harms = [
            {"resource": each.name, "type": each.kind, "deed": each.deed, "why": each.why} for each in comparison.harms
        ]
        fields = {"changes": changes, "harms": harms, "messages_in_queues_that_go": waiting, "drifts": drifts}
        tools.show(fields, as_json=True)
        return
    if comparison.changes:
        table = table_of("deed", "type", "resource", "parts")
        for each in comparison.changes:
            add_row(table, each.deed, each.kind, each.name, ", ".join(each.parts))
        tools.out.print(table)
        tools.tell(", ".join(f"{count} {kind} {deed}" for (deed, kind), count in comparison.sums.most_common()) + ".")
    else:
        tools.tell("The deployed template is the one of this code.")
    for harm in comparison.harms:
        tools.tell(f"DATA AT RISK: {harm.kind} {harm.name} would be {harm.deed}: {harm.why}.")
    for worker, number in waiting.items():
        tools.tell(
            f"{worker}: its queues go, and hold {number} messages: drain it first (`tahan drain`), and its dead letters."
        )
    for drift in drifts:
        tools.tell(f"Not as deployed: {drift}.")
