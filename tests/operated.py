"""A stack of the tests as its operators find it: what it says of itself, and what of AWS is played where the tests' endpoint has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ops.stack.aws_running import AwsRunning
from ops.stack.running import Receiving
from shared.backends.sqs.dead_letters import SqsDeadLetters
from shared.errors import Unavailable
from shared.naming import camel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ME = "arn:aws:sts::000000000000:assumed-role/operator/me"


def outputs_of(
    table: str,
    audit: str,
    queues: Mapping[str, str],
    dead: Mapping[str, str],
    concurrency: Callable[[str], int] = lambda _: 20,
) -> dict[str, str]:
    """The outputs of a stack that runs the workers of these queues, as `infra` spells them.

    Args:
        table: of job records.
        audit: log group.
        queues: URLs, by worker.
        dead: those of the dead-letter queues.
        concurrency: of a worker's mapping.
    """
    outputs = {"JobsTable": table, "AuditLog": audit, "LookoutFunction": "lookout"}
    for worker, url in queues.items():
        name = camel(worker)
        outputs |= {
            f"Queue{name}": url,
            f"DeadLetterQueue{name}": dead[worker],
            f"Mapping{name}": f"uuid-{worker} {concurrency(worker)}",
            f"Consumer{name}": f"consumer-{worker}",
        }
    return outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking(AwsRunning):
    """What the endpoint knows; the mappings are the tests' own, and the lookout is asked without Lambda."""

    receives: Callable[[str], bool]
    lookout: Callable[[dict[str, object]], dict[str, Any]]
    concurrency: int | None = None

    def receiving(self, worker: str) -> Receiving:
        return Receiving("Enabled" if self.receives(worker) else "Disabled", self.concurrency)

    def ask_lookout(self, question: Mapping[str, object]) -> dict[str, Any]:
        told = self.lookout(dict(question))
        if "unavailable" in told:
            raise Unavailable(told["unavailable"], dependency="lookout")
        return told


class Letters(SqsDeadLetters):
    """A dead-letter queue at an endpoint that knows no move tasks, and is not asked for any."""

    def redrive(self) -> None:
        """None runs."""
