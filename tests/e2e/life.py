"""The steps of a stack's life, each with what it must show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from infra.stage.settings import ROOT
from local.processes.environment import CREDENTIALS, REGION
from local.stack.running import STACK
from ops.exits import Exit
from tests.e2e.load import ENDS, Load
from tests.e2e.release import next_release

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from local.stack.running import Stack
    from tests.e2e.load import Books

PATIENCE = timedelta(minutes=3)
EACH = 15  # probes that must have run each release before the next step
RATE = 5.0
LIVE = "live"


class WrongError(Exception):
    """A step has not shown what it must."""


@dataclass
class Life:
    """The life of one deployed stack; `done` tells what each step has shown."""

    stack: Stack
    say: Callable[[str], None]
    done: list[tuple[str, str]] = field(default_factory=list)

    def note(self, step: str, shown: str) -> None:
        """Tell of a step that is over."""
        self.done.append((step, shown))
        self.say(f"{step}: {shown}")

    def tahan(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The command line on this stack, as operators have it."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        environ = {
            **inherited,
            **CREDENTIALS,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.stack.standin.endpoint,
        }
        command = [sys.executable, "-m", "ops", *words, "--stack", STACK]
        return subprocess.run(  # noqa: S603 - ours
            command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=300
        )

    def smoke(self, folder: Path) -> None:
        """`tahan smoke` ends well, with a caller's token, too."""
        file = folder / "token"
        file.write_text(self.stack.issuer.token("smoke"), encoding="utf-8")
        ran = self.tahan("smoke", "--json", "--api", self.stack.api, "--token-file", str(file))
        demand(ran.returncode == 0, f"tahan smoke: {ran.stdout}{ran.stderr}")
        self.note("smoke", "every situation ended as it must")

    def check(self, assembly: Path, *, is_deployed: bool) -> None:
        """`tahan deploy-check` tells whether an assembly is what is deployed. That addresses were given by parameters is told, too."""
        ran = self.tahan("deploy-check", "--json", "--assembly", str(assembly))
        demand(ran.returncode == Exit.DIFFERS, f"deploy-check gave {ran.returncode}: {ran.stdout}{ran.stderr}")
        told = json.loads(ran.stdout)
        demand(bool(told["changes"]) != is_deployed, f"deploy-check of {assembly.name}: {ran.stdout}")
        demand(all(drift.startswith("parameter ") for drift in told["drifts"]), f"deploy-check: {told['drifts']}")

    def update_and_roll_back(self, folder: Path) -> Books:
        """The next release and the first again, under load: nothing is lost, nothing happens twice."""
        first, deployed = self.stack.deployed.assembly, self.stack.deployed
        self.say("synthesising the next release")
        coming = next_release(folder)
        versions = self._versions()
        with Load(self.stack, "update", RATE) as load:
            books = load.wait(EACH, PATIENCE)
            demand(books.releases["first"] >= EACH, f"the first release did not work before the update: {books}")
            deployed.put(coming, folder / "next")
            self.check(folder / "next", is_deployed=True)
            self.check(first, is_deployed=False)
            moved = self._versions()
            demand(moved != versions, f"no alias moved: {moved}")
            number = load.books().releases["next"]
            books = self._until(load, "next", number + EACH)
            self._shift(load)
            deployed.deployment.deploy(first, deployed.parameters)
            back = load.sent
            books = self._until(load, "first", books.releases["first"] + EACH)
            demand(load.sent >= back, "the load has stopped")
        books = load.wait(load.sent, PATIENCE)
        demand(books.is_right, f"after the update: {books}, {load.failures[:3]}")
        shown = f"{books.sent} probes, {books.releases['next']} by the next release, {books.effects} effects, 0 lost"
        self.note("updated under load, rolled back", shown)
        return books

    def _until(self, load: Load, release: str, number: int) -> Books:
        books = load.books()
        while books.releases[release] < number:
            before = books.ended[ENDS]
            books = load.wait(before + 1, PATIENCE)
            demand(books.ended[ENDS] > before, f"nothing completes any more: {books}")
        return books

    def _shift(self, load: Load) -> None:
        """A part of the traffic goes to the version before, as a canary rollout would have it, and back."""
        function = self.stack.outputs["ConsumerCanary"]
        functions = self.stack.clients.functions
        numbers = [each["Version"] for each in functions.list_versions_by_function(FunctionName=function)["Versions"]]
        published = sorted((each for each in numbers if each.isdigit()), key=int)
        demand(len(published) > 1, f"the version before is gone: {numbers}")
        for weights in ({published[-2]: 0.5}, {}):
            functions.update_alias(
                FunctionName=function, Name=LIVE, RoutingConfig={"AdditionalVersionWeights": weights}
            )
            alias = functions.get_alias(FunctionName=function, Name=LIVE)
            told = alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})
            demand(told == weights, f"the alias has the weights {told}, not {weights}")
            before = load.books().ended[ENDS]
            demand(load.wait(before + 5, PATIENCE).ended[ENDS] > before, f"nothing completes with weights {weights}")

    def _versions(self) -> dict[str, str]:
        functions = self.stack.clients.functions
        consumers = {name: value for name, value in self.stack.outputs.items() if name.startswith("Consumer")}
        return {
            name: functions.get_alias(FunctionName=function, Name=LIVE)["FunctionVersion"]
            for name, function in consumers.items()
        }

    def destroy(self) -> None:
        """The stack goes, and nothing of it is left."""
        clients = self.stack.clients
        buckets = [value for name, value in self.stack.outputs.items() if name.startswith("Bucket")]
        for bucket in buckets:  # CloudFormation deletes no bucket that holds something
            for each in clients.s3.list_objects_v2(Bucket=bucket).get("Contents", []):
                clients.s3.delete_object(Bucket=bucket, Key=each["Key"])
        self.stack.deployed.take_away()
        left = {
            "tables": clients.dynamodb.list_tables()["TableNames"],
            "queues": clients.sqs.list_queues().get("QueueUrls", []),
            "functions": [each["FunctionName"] for each in clients.functions.list_functions()["Functions"]],
            "mappings": [
                each["UUID"] for each in clients.functions.list_event_source_mappings()["EventSourceMappings"]
            ],
            "buckets": [each["Name"] for each in clients.s3.list_buckets()["Buckets"] if each["Name"] in buckets],
            "stacks": self._stacks(),
        }
        demand(not any(left.values()), f"left behind: {left}")
        self.note("destroyed", "no stack, table, queue, function, mapping or bucket of it is left")

    def _stacks(self) -> list[str]:
        summaries: list[Any] = self.stack.clients.cloudformation.list_stacks()["StackSummaries"]
        return [
            each["StackName"]
            for each in summaries
            if each["StackName"] == STACK and each["StackStatus"] != "DELETE_COMPLETE"
        ]


def demand(holds: bool, otherwise: str) -> None:
    """Go on only if it holds.

    Raises:
        WrongError: it does not.
    """
    if not holds:
        raise WrongError(otherwise)
