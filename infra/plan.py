"""What a set of workers needs together, and the refusals that no single worker can see. Plain Python, no CDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.settings import Stage
    from shared.table import Table
    from shared.worker import Worker


def camel(name: str) -> str:
    """A declared name as CloudFormation spells it: `payment-provider` is `PaymentProvider`."""
    return "".join(part.capitalize() for part in name.split("-"))


def module_of(worker: Worker) -> str:
    """The module that holds a worker's handler: `functions.order_lines` of `order-lines`."""
    return f"functions.{worker.name.replace('-', '_')}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Workers that live in one stack, checked against each other and the stage."""

    stage: Stage
    workers: tuple[Worker, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what AWS would refuse only at deploy, or what would fail at run time.

        Raises:
            DeclarationError: with the arithmetic and the repair.
        """
        _refuse_twins("workers", [worker.name for worker in self.workers])
        _refuse_twins("job types", [job.name for worker in self.workers for job in worker.jobs])
        _refuse_twins("tables", [table.name for table in self.tables])
        _refuse_missing_egress(self)

    @property
    def tables(self) -> tuple[Table, ...]:
        """Business tables of all workers, each once."""
        return tuple(dict.fromkeys(access.table for worker in self.workers for access in worker.accesses))

    @property
    def outgoing(self) -> tuple[Worker, ...]:
        """Workers that call a system outside the stack."""
        return tuple(worker for worker in self.workers if worker.dependencies)

    def with_worker(self, worker: Worker) -> Plan:
        """The plan with one more worker, checked again."""
        return Plan(self.stage, (*self.workers, worker))


def _refuse_twins(kind: str, names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(camel(name), name)) is not name or names.count(name) > 1:
            message = f"two {kind} are called {other!r} and {name!r}, which is one name in the stack: rename one."
            raise DeclarationError(message)


def _refuse_missing_egress(plan: Plan) -> None:
    if plan.outgoing and plan.stage.nat_gateways == 0:
        calls = ", ".join(f"{w.name!r} calls {' and '.join(d.name for d in w.dependencies)}" for w in plan.outgoing)
        message = (
            f"stage {plan.stage.name!r}: {len(plan.outgoing)} of {len(plan.workers)} workers call outside systems"
            f" ({calls}), and nat_gateways=0 lets no call out: set nat_gateways to 1 or more in cdk.json, or take the"
            " dependency out of `uses`."
        )
        raise DeclarationError(message)
