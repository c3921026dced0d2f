"""`tahan deploy-check`: what a deploy of this code would do to a stack, and whether it runs as it was deployed. It changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ops.commands.words import command
from ops.exits import Exit
from ops.explained import explained
from ops.stack.comparison import compared
from ops.stack.drift import drifts, kept_parameters, messages_of, template_in
from ops.tables import add_row, table_of

if TYPE_CHECKING:
    import argparse

    from ops.commands.words import Commands
    from ops.stack.comparison import Comparison
    from ops.tools import Tools


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    about = "compare a deployed stack with this code: what a deploy would do, and what runs otherwise than deployed"
    parser = command(commands, everywhere, "deploy-check", about, run)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--stage", help="of cdk.json, to synthesise; by default the one that the stack is tagged with")
    source.add_argument("--assembly", metavar="DIR", help="what was synthesised already (cdk.out)")


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
    wanted = template_in(folder, stack.name)
    comparison = compared(deployed, wanted)
    with explained():
        waiting = {name: number for name in comparison.workers if (number := messages_of(stack, name, tools))}
        otherwise = [*drifts(stack, tools), *kept_parameters(stack, wanted)]
    _show(comparison, waiting, otherwise, tools, as_json=options.json)
    if comparison.harms or waiting:
        return Exit.HARMFUL
    return Exit.DONE if comparison.is_same and not otherwise else Exit.DIFFERS


def _show(
    comparison: Comparison, waiting: dict[str, int], otherwise: list[str], tools: Tools, *, as_json: bool
) -> None:
    if as_json:
        changes = [
            {"resource": each.name, "type": each.kind, "deed": each.deed, "parts": list(each.parts)}
            for each in comparison.differences
        ]
        harms = [
            {"resource": each.name, "type": each.kind, "deed": each.deed, "why": each.why} for each in comparison.harms
        ]
        fields = {"changes": changes, "harms": harms, "messages_in_queues_that_go": waiting, "drifts": otherwise}
        tools.show(fields, as_json=True)
        return
    if comparison.differences:
        table = table_of("deed", "type", "resource", "parts")
        for each in comparison.differences:
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
    for drift in otherwise:
        tools.tell(f"Not as deployed: {drift}.")
