"""A deployed stack, as its CloudFormation outputs describe it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.registry import WORKERS
from ops.exits import CommandError, Exit
from shared.backends.aws import client
from shared.backends.mappings import Mapped
from shared.naming import camel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.worker import Worker


@dataclass(frozen=True, slots=True)
class Deployed:
    """A stack's name, its outputs, parameters and tags by name, and its status as CloudFormation has it."""

    name: str
    outputs: Mapping[str, str]
    parameters: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    status: str = "UPDATE_COMPLETE"

    @property
    def stage(self) -> str:
        """The stage that it was deployed from: as it is tagged, else what its name ends in."""
        return self.tags.get("stage") or self.name.rpartition("-")[2]

    @property
    def jobs_table(self) -> str:
        """The table of job records."""
        return self._output("JobsTable")

    def queue_of(self, worker: str) -> str:
        """The URL of a worker's queue."""
        return self._output(_output_of("Queue", worker))

    @property
    def audit_log(self) -> str:
        """The log group that tells who changed what, and why."""
        return self._output("AuditLog")

    def dead_letters_of(self, worker: str) -> str:
        """The URL of a worker's dead-letter queue."""
        return self._output(_output_of("DeadLetterQueue", worker))

    def mapping_of(self, worker: str) -> Mapped:
        """A worker's event source mapping."""
        return Mapped.read(self._output(_output_of("Mapping", worker)))

    @property
    def consumers(self) -> dict[str, str]:
        """The names of its consumer functions, by worker."""
        return {worker.name: self._output(_output_of("Consumer", worker.name)) for worker in self.workers()}

    @property
    def lookout(self) -> str:
        """The name of the function that looks into the cache for operators."""
        return self._output("LookoutFunction")

    def workers(self, *names: str) -> list[Worker]:
        """The workers that the stack runs; of these, where any are named, those.

        Raises:
            CommandError: it runs no such worker.
        """
        runs = [worker for worker in WORKERS if _output_of("Queue", worker.name) in self.outputs]
        for name in names:
            if name not in {worker.name for worker in runs}:
                known = ", ".join(worker.name for worker in runs) or "none"
                message = f"The stack {self.name} runs no worker {name!r}. It runs {known}."
                raise CommandError(message, Exit.REFUSED)
        return [worker for worker in runs if not names or worker.name in names]

    def _output(self, name: str) -> str:
        if name not in self.outputs:
            message = (
                f"The stack {self.name!r} has no output {name}: it is no stack of this project, or an older one that"
                " wants to be deployed anew. Name another with --stack."
            )
            raise CommandError(message)
        return self.outputs[name]


def _output_of(kind: str, worker: str) -> str:
    return kind + camel(worker)


def template_of(name: str) -> Any:  # noqa: ANN401 - JSON
    """The template that a stack was deployed from."""
    body = client("cloudformation").get_template(StackName=name, TemplateStage="Original")["TemplateBody"]
    return json.loads(body) if isinstance(body, str) else body


def find(name: str) -> Deployed:
    """Look a stack up in CloudFormation.

    Raises:
        CommandError: there is none of that name.
    """
    cloudformation = client("cloudformation")
    try:
        (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if (
            error.response["Error"]["Code"] == "ValidationError"
        ):  # CloudFormation's word for a name that it does not know
            message = (
                f"There is no stack {name!r} in {cloudformation.meta.region_name}: name it with --stack (they are called"
                " tahan-<stage>) and its region with --region, or deploy it."
            )
            raise CommandError(message) from error
        raise
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
    parameters = {each["ParameterKey"]: each.get("ParameterValue", "") for each in stack.get("Parameters", [])}
    tags = {tag["Key"]: tag["Value"] for tag in stack.get("Tags", [])}
    return Deployed(name, outputs, parameters, tags, stack["StackStatus"])
