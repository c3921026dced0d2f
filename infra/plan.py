"""What a set of workers needs together, and the refusals that no single worker can see. Plain Python, no CDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.names import queue_names, stack_name
from infra.stage.sizes import FRONT_DOOR, Size
from shared.errors import DeclarationError
from shared.naming import camel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from infra.stage.settings import Stage
    from shared.dependency import Dependency
    from shared.table import Table
    from shared.worker import Worker


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
        _refuse_twins("workers", ((worker.name, "") for worker in self.workers))
        _refuse_twins("job types", ((j.name, f" of worker {w.name!r}") for w in self.workers for j in w.jobs))
        _refuse_twins("tables", ((table.name, "") for table in self.tables))
        _refuse_twins("buckets", ((name, "") for name in self.buckets))
        _refuse_two_ways(self)
        called = dict.fromkeys(each.name for worker in self.workers for each in worker.dependencies)
        _refuse_twins("dependencies", ((name, "") for name in called))
        for worker in self.workers:
            queue_names(stack_name(self.stage), worker)
            _refuse_what_the_stage_breaks(self.stage, worker)
        _refuse_unknown_sizes(self)
        _refuse_missing_egress(self)
        _refuse_unknown_endpoints(self)
        _refuse_what_no_client_reaches(self)

    @property
    def tables(self) -> tuple[Table, ...]:
        """Business tables of all workers, each once."""
        return tuple(dict.fromkeys(access.table for worker in self.workers for access in worker.accesses))

    @property
    def buckets(self) -> tuple[str, ...]:
        """Buckets of all workers, each once."""
        return tuple(dict.fromkeys(reach.folder.bucket for worker in self.workers for reach in worker.reaches))

    @property
    def outgoing(self) -> tuple[Worker, ...]:
        """Workers that call a system outside the stack."""
        return tuple(worker for worker in self.workers if worker.dependencies)

    def with_worker(self, worker: Worker) -> Plan:
        """The plan with one more worker, checked again."""
        return Plan(self.stage, (*self.workers, worker))


def _refuse_twins(kind: str, owned: Iterable[tuple[str, str]]) -> None:
    seen: dict[str, str] = {}
    for name, owner in owned:
        called = f"{name!r}{owner}"
        if (other := seen.get(camel(name))) is not None:
            message = f"two {kind} are called {other} and {called}, which is one name in the stack: rename one."
            raise DeclarationError(message)
        seen[camel(name)] = called


def _refuse_what_the_stage_breaks(stage: Stage, worker: Worker) -> None:
    size = stage.sizes.get(worker.name, Size())
    most = size.max_concurrency or stage.max_concurrency
    reserved, ready = size.reserved_concurrency or worker.reserved_concurrency, size.provisioned_concurrency
    if ready is not None and reserved is not None and ready > reserved:
        message = (
            f"stage {stage.name!r}: provisioned_concurrency={ready} is over reserved_concurrency={reserved} of worker"
            f" {worker.name!r}: set at most {reserved} in cdk.json, or raise the latter."
        )
        raise DeclarationError(message)
    runs = most or worker.max_concurrency
    if ready is not None and ready > runs:
        message = (
            f"stage {stage.name!r}: provisioned_concurrency={ready} of worker {worker.name!r} is over its max_concurrency="
            f"{runs}: the rest would be paid for and never used; lower the first or raise the second."
        )
        raise DeclarationError(message)
    if most is not None and reserved is not None and most > reserved:
        message = (
            f"stage {stage.name!r}: max_concurrency={most} is over reserved_concurrency={reserved} of worker"
            f" {worker.name!r}, whose polls would be throttled: set at most {reserved} in cdk.json, or raise the"
            " worker's."
        )
        raise DeclarationError(message)
    try:
        stage.at(worker)
    except DeclarationError as error:
        message = f"stage {stage.name!r} with pace={stage.pace:g}: {error}"
        raise DeclarationError(message) from error


def _refuse_two_ways(plan: Plan) -> None:
    """A dependency's bounds hold over all workers: what one declares otherwise would make them nobody's."""
    known: dict[str, tuple[str, Dependency]] = {}
    for worker in plan.workers:
        for dependency in worker.dependencies:
            other, declared = known.setdefault(dependency.name, (worker.name, dependency))
            if declared != dependency:
                message = (
                    f"dependency {dependency.name!r} is declared in two ways, by workers {other!r} and {worker.name!r}: its"
                    " bounds hold over all of them; declare it once, and import it."
                )
                raise DeclarationError(message)


def _refuse_unknown_sizes(plan: Plan) -> None:
    known = [FRONT_DOOR, *(worker.name for worker in plan.workers)]
    unknown = sorted(plan.stage.sizes.keys() - set(known))
    if unknown:
        message = (
            f"stage {plan.stage.name!r}: sizes has {unknown}, and there is no such worker: choose of {known}; repair the"
            " name in cdk.json, or take it out."
        )
        raise DeclarationError(message)


def _refuse_missing_egress(plan: Plan) -> None:
    network = plan.stage.network
    if plan.outgoing and network is not None and not network.egress:
        message = (
            f"stage {plan.stage.name!r}: {', '.join(repr(w.name) for w in plan.outgoing)} call outside systems, and"
            f" network {network.vpc!r} has no egress subnets: give one for each zone, or take the dependency out of"
            " `uses`."
        )
        raise DeclarationError(message)
    if plan.outgoing and network is None and plan.stage.nat_gateways == 0:
        calls = ", ".join(f"{w.name!r} calls {' and '.join(d.name for d in w.dependencies)}" for w in plan.outgoing)
        message = (
            f"stage {plan.stage.name!r}: {len(plan.outgoing)} of {len(plan.workers)} workers call outside systems"
            f" ({calls}), and nat_gateways=0 lets no call out: set nat_gateways to 1 or more in cdk.json, or take the"
            " dependency out of `uses`."
        )
        raise DeclarationError(message)


def _refuse_unknown_endpoints(plan: Plan) -> None:
    known = sorted({dependency.name for worker in plan.workers for dependency in worker.dependencies})
    unknown = sorted(plan.stage.endpoints.keys() - set(known))
    if unknown:
        message = (
            f"stage {plan.stage.name!r}: endpoints has {unknown}, and no worker uses a dependency of that name: those"
            f" in use are {known}; repair the name in cdk.json, or take it out."
        )
        raise DeclarationError(message)


def _refuse_what_no_client_reaches(plan: Plan) -> None:
    """An open job type has to be known to the front door: its worker, and whose what it is about is."""
    opened = [declared.name for worker in plan.workers for declared in worker.jobs if declared.open_to_clients]
    if not opened:
        return
    from functions import front_door  # noqa: PLC0415 - most of it is of no use to a synth
    from functions.http import resources  # noqa: PLC0415 - the same

    for name in opened:
        if name not in front_door.OPEN:
            message = (
                f"job {name!r} is open to clients, and the front door does not know it: add its worker to WORKERS in"
                " functions/front_door.py, and run `make openapi`."
            )
            raise DeclarationError(message)
        if name not in resources.RESOURCES.keys() | resources.ABOUT_NOBODY:
            message = (
                f"job {name!r} is open to clients, and nothing says whose what it is about is, so anybody could ask for"
                " anybody's: add it to RESOURCES in functions/http/resources.py, or to ABOUT_NOBODY."
            )
            raise DeclarationError(message)
