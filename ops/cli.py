"""The command line: reads the words, goes to the stack that is meant, runs one command, ends with its status.

Each command is a module that adds itself here: `add` declares its words, `run` does it.
"""

from __future__ import annotations

import argparse
import os
import sys
from random import SystemRandom
from typing import TYPE_CHECKING

from rich.console import Console

from ops.commands import (
    alarms,
    brake,
    console,
    deploy_check,
    dlq,
    enqueue,
    job,
    locks,
    new_worker,
    operation,
    smoke,
    status,
)
from ops.commands.editor import in_editor
from ops.exits import CommandError, Exit
from ops.jobs.job_records import DynamoDBJobs
from ops.stack.aws_running import AwsRunning
from ops.stack.deployed import find, template_of
from ops.stack.door import http_status
from ops.stack.drift import synthesised
from ops.stack.place import STACK_VARIABLE, USUAL_STACK, go_local, go_to_aws
from ops.stack.together import side_by_side
from ops.tools import Tools
from shared.backends.audit_log import CloudWatchAudit, caller
from shared.backends.aws import client
from shared.backends.dynamodb.brakes import DynamoDBBrakes
from shared.backends.dynamodb.operator_records import DynamoDBOperatorRecords
from shared.backends.dynamodb.owned_jobs import DynamoDBOwnedJobs
from shared.backends.mappings import LambdaMappings
from shared.backends.sqs.dead_letters import SqsDeadLetters
from shared.clock import SystemClock, random_token
from shared.runtime import producer

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = (status, enqueue, operation, job, dlq, brake, locks, alarms, smoke, deploy_check, console, new_worker)

BATCH_SECONDS = 10.0  # a batch of large letters, or of fifty records, takes longer than a call of a worker may


def connected() -> Tools:
    """The tools for a stack that is reached by this process's environment; clients are made when first used."""
    clock = SystemClock()
    return Tools(
        out=Console(highlight=False),
        err=Console(stderr=True, highlight=False),
        stdin=sys.stdin,
        clock=clock,
        tokens=random_token,
        deployed=find,
        producer=producer,
        jobs=lambda table: DynamoDBJobs(client("dynamodb"), table, clock),
        dead_letters=lambda source, dead: SqsDeadLetters(
            client("sqs", read_seconds=BATCH_SECONDS), dead, source, traces_alone="AWS_ENDPOINT_URL" in os.environ
        ),
        operator=lambda table: DynamoDBOperatorRecords(
            client("dynamodb", read_seconds=BATCH_SECONDS), table, clock, SystemRandom()
        ),
        audit=lambda group: CloudWatchAudit(client("logs"), group, clock, random_token()),
        caller=caller,
        side_by_side=side_by_side,
        edit=in_editor,
        brakes=lambda table: DynamoDBBrakes(client("dynamodb"), table),
        mappings=lambda mapped: LambdaMappings(client("lambda"), mapped),
        running=AwsRunning,
        template=template_of,
        assembly=synthesised,
        http_status=http_status,
        owned=lambda table: DynamoDBOwnedJobs(client("dynamodb"), table, clock, SystemRandom()),
    )


def parser() -> argparse.ArgumentParser:
    """All words that are understood; those that hold for every command may stand before it and after it."""
    whole = argparse.ArgumentParser(
        prog="tahan",
        description="Operate a deployed stack.",
        epilog="Exit statuses and permissions: docs/reference/cli.md",
        parents=[_everywhere()],
    )
    # What is said before the command is not to be forgotten where nothing is said after it.
    after = _everywhere(argparse.SUPPRESS)
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands, after)
    return whole


def _everywhere(default: str | None = None) -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(add_help=False)
    group = words.add_argument_group("which stack, and how to answer")
    group.add_argument("--stack", default=default, help=f"its name; by default ${STACK_VARIABLE}, else {USUAL_STACK}")
    group.add_argument("--profile", default=default, help="AWS profile; by default as for every AWS tool")
    group.add_argument("--region", default=default, help="AWS region; the same")
    group.add_argument(
        "--local", action="store_true", default=default, help="the stack that `make local` keeps up on this machine"
    )
    group.add_argument("--json", action="store_true", default=default, help="one JSON object on standard output")
    return words


def main(words: Sequence[str], tools: Tools | None = None) -> int:
    """Run one command; give the exit status."""
    options = parser().parse_args(words)
    using = tools or connected()
    try:
        usual = go_local(os.environ) if options.local else go_to_aws(os.environ, options.profile, options.region)
        options.stack = options.stack or usual
        return int(options.run(options, using))
    except CommandError as error:
        using.tell(str(error))
        return int(error.status)
    except KeyboardInterrupt:
        return int(Exit.INTERRUPTED)
