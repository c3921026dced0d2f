"""`tahan smoke`: sends one of each situation through a deployed stack, sees how each ends, and takes its dead letters away again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from functions import canary
from functions.canary import smoke_probe
from ops.audit import Change, audited
from ops.commands.words import command
from ops.exits import CommandError, Exit
from ops.explained import explained
from ops.letters.desk import Desk
from ops.probes import SITUATIONS, Probes, Result
from ops.stack.door import check_url
from ops.tables import add_row, table_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from ops.commands.words import Commands
    from ops.stack.deployed import Deployed
    from ops.tools import Tools

PATIENCE = 120
ANONYMOUS = (401, 403)  # an authoriser of tokens says the first, IAM the second
LONGEST_RUN = 40


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    about = "send one of each situation through the stack, and see that each ends as it must"
    parser = command(commands, everywhere, "smoke", about, run)
    parser.add_argument(
        "--timeout", type=int, default=PATIENCE, metavar="S", help=f"seconds to wait, by default {PATIENCE}"
    )
    parser.add_argument("--api", metavar="URL", help="the front door's URL; by default the stack's own")
    parser.add_argument(
        "--token-file", metavar="FILE", help="a caller's token: the front door is then asked with it, too"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be sent, and send nothing")


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Send, wait, show, clean up.

    Raises:
        CommandError: the stack runs no canary, or AWS does not answer.
    """
    with explained():
        stack = tools.deployed(options.stack)
        stack.workers(canary.WORKER.name)
        if options.dry_run:
            would = {each.name: each.expected for each in SITUATIONS}
            tools.show({**would, "sent": False}, as_json=options.json)
            return Exit.DONE
        token = None if options.token_file is None else _token(options.token_file)
        api = options.api or stack.outputs.get("Api")
        if api is not None:
            check_url(api)
        probes = _probes(stack, tools)
        with audited(tools, stack, Change("smoke", probes.name, "a smoke test")) as ended:
            try:
                probes.send()
                with tools.busy(f"Waiting for {len(SITUATIONS)} probes of run {probes.name} ..."):
                    results = probes.wait(timedelta(seconds=options.timeout))
                results += _front_door(api, token, tools)
            finally:
                left = probes.clean()
                ended.counts = {"letters_left": left}
            wrong = sum(not result.is_right for result in results)
            ended.counts = {"right": len(results) - wrong, "wrong": wrong, "letters_left": left}
    _show(results, probes.name, left, tools, as_json=options.json)
    return Exit.NOT_DONE if wrong else Exit.LEFT if left else Exit.DONE


def _probes(stack: Deployed, tools: Tools) -> Probes:
    worker = canary.WORKER.name
    queue = tools.dead_letters(stack.queue_of(worker), stack.dead_letters_of(worker))
    desk = Desk(worker, queue, tools.operator(stack.jobs_table), tools.clock)
    name = "".join(letter for letter in tools.tokens().lower() if letter.isalnum())[:LONGEST_RUN]
    return Probes(name, stack, tools, tools.jobs(stack.jobs_table), desk)


def _token(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        message = f"The token's file cannot be read: {file} ({type(error).__name__})."
        raise CommandError(message, Exit.REFUSED) from error


def _front_door(api: str | None, token: str | None, tools: Tools) -> Iterator[Result]:
    """Whom the front door lets in. A stack without one has nothing to ask."""
    if api is None:
        return
    url = f"{api.rstrip('/')}/operations"
    refused = " or ".join(map(str, ANONYMOUS))
    seen = _status(url, None, tools)
    yield Result("the front door, without a token", refused, refused if seen in set(map(str, ANONYMOUS)) else seen)
    if token is not None:
        yield Result("the front door, with a token", "200", _status(url, token, tools))


def _status(url: str, token: str | None, tools: Tools) -> str:
    try:
        return str(tools.http_status(url, token))
    except CommandError:
        return "no answer"


def _show(results: Sequence[Result], name: str, left: int, tools: Tools, *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"situation": each.name, "expected": each.expected, "seen": each.seen, "right": each.is_right}
            for each in results
        ]
        tools.show({"run": name, "results": rows, "letters_left": left}, as_json=True)
        return
    table = table_of("situation", "expected", "seen", "")
    for each in results:
        add_row(table, each.name, each.expected, each.seen, "ok" if each.is_right else "WRONG")
    tools.out.print(table)
    wrong = sum(not each.is_right for each in results)
    told = f"{wrong} did not: look at `tahan status`, and at `tahan operation list`" if wrong else "none did not"
    tools.tell(f"{len(results) - wrong} of {len(results)} ended as they must, {told}.")
    if left:
        tools.tell(f"{left} dead letters of this run are left: `tahan dlq discard --job-type {smoke_probe.name}`.")
