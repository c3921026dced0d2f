"""Deploys an assembly into the stand-in with the real CDK command line, as it would be deployed to AWS."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from local import ROOT
from local.processes.child import ProcessError, Program
from local.processes.environment import ACCOUNT, REGION, child_environment, loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from local.processes.children import Children

CDK = ROOT / "node_modules" / ".bin" / "cdk"
PATIENCE = timedelta(minutes=5)
# A line of the CLI has the columns stack, how many are done, time, state, type, path and id.
DONE = re.compile(r"\|\s*(\d+/\d+) \|[^|]*\| CREATE_COMPLETE\s*\| (\S+)\s*\| (\S+)")
FAILED = re.compile(r"CREATE_FAILED|❌|^\W*\w*Error\b")
QUIET = {
    "CI": "true",
    "CDK_DISABLE_CLI_TELEMETRY": "true",
    "CDK_DISABLE_VERSION_CHECK": "true",
    "NODE_NO_WARNINGS": "1",
}


@dataclass(frozen=True, slots=True)
class Deployment:
    """Deploys into one stand-in; its files and logs go to `folder`."""

    children: Children
    endpoint: str
    folder: Path
    progress: Callable[[str], None]

    def bootstrap(self) -> None:
        """Make the stand-in ready for deployments.

        Raises:
            ProcessError: the CDK command line refused; the message ends with its words.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.install()
        self._cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}")

    def deploy(self, assembly: Path, parameters: Mapping[str, str]) -> dict[str, str]:
        """Deploy every stack of the assembly, or update those that are there, and give the outputs by name.

        Raises:
            ProcessError: the CDK command line or CloudFormation refused; the message ends with its words.
        """
        outputs = self.folder / "outputs.json"
        given = [word for name, value in parameters.items() for word in ("--parameters", f"{name}={value}")]
        options = [
            "--all",
            "--require-approval",
            "never",
            "--no-rollback",
            "--progress",
            "events",
            "--outputs-file",
            str(outputs),
        ]
        self._cdk("deploy", "--app", str(assembly), *options, *given)
        return {name: value for stack in json.loads(outputs.read_text()).values() for name, value in stack.items()}

    def destroy(self, assembly: Path) -> None:
        """Delete every stack of the assembly.

        Raises:
            ProcessError: the CDK command line or CloudFormation refused; the message ends with its words.
        """
        self._cdk("destroy", "--app", str(assembly), "--all", "--force")

    def _cdk(self, command: str, *arguments: str) -> None:
        environ = {
            **child_environment(os.environ, self.folder),
            **QUIET,
            "AWS_ENDPOINT_URL": loopback(self.endpoint),
        }
        words = (str(CDK), command, *arguments, "--no-notices", "--no-color", "--no-version-reporting")
        program = Program(f"cdk {command}", words, environ, self.folder / f"cdk-{command}.log", self.folder)
        self.children.run(program, PATIENCE, self._tell)

    def _tell(self, line: str) -> None:
        """Pass on what was created and what failed; the rest of the CLI's words is in its log."""
        if created := DONE.search(line):
            self.progress("{:>7} {} {}".format(*created.groups()))
        elif FAILED.search(line):
            self.progress(line)

    def install(self) -> None:
        """Install the CDK command line, unless it is there in the locked version.

        Raises:
            ProcessError: npm is not there, or cannot get it.
        """
        if _version(ROOT / "node_modules" / ".package-lock.json") == _version(ROOT / "package-lock.json"):
            return
        npm = shutil.which("npm")
        if npm is None:
            message = "npm was not found: install Node.js 20 or later, the CDK command line runs on it."
            raise ProcessError(message)
        self.progress("installing the CDK command line (once)")
        command = (npm, "ci", "--no-audit", "--no-fund")
        self.children.run(
            Program("npm ci", command, os.environ, self.folder / "npm.log", ROOT), PATIENCE, self.progress
        )


def _version(lock: Path) -> str | None:
    """The version of the CDK command line in a lock file of npm; None if there is no such file."""
    if not lock.exists():
        return None
    version: str = json.loads(lock.read_text(encoding="utf-8"))["packages"]["node_modules/aws-cdk"]["version"]
    return version
