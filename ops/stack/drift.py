"""What runs otherwise than this code says: the assembly that it is compared with, and what was changed since the deploy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ops import ROOT
from ops.exits import CommandError, Exit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ops.stack.deployed import Deployed
    from ops.tools import Tools

ENABLED = "Enabled"


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


def template_in(folder: Path, stack: str) -> Any:  # noqa: ANN401 - JSON
    """The template of a stack in an assembly.

    Raises:
        CommandError: it holds none.
    """
    file = folder / f"{stack}.template.json"
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        known = sorted(path.name.removesuffix(".template.json") for path in folder.glob("*.template.json"))
        message = f"{folder} holds no template of {stack} (it holds {', '.join(known) or 'none'}): name its --stage."
        raise CommandError(message, Exit.REFUSED) from error


def messages_of(stack: Deployed, worker: str, tools: Tools) -> int:
    """How many messages a worker's queues hold, dead letters among them."""
    depth = tools.running(stack).depth(worker)
    return depth.waiting + depth.in_flight + depth.delayed + depth.dead


def kept_parameters(stack: Deployed, wanted: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Parameters that a deploy would leave as they are, whatever cdk.json says by now: the CDK keeps the values of before."""
    for name, parameter in wanted.get("Parameters", {}).items():
        value = stack.parameters.get(name)
        default = parameter.get("Default")
        if None not in {value, default} and value != default:
            yield f"parameter {name} is {value!r}, this code says {default!r}: give it by --parameters, or it stays"


def drifts(stack: Deployed, tools: Tools) -> Iterator[str]:
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
