"""Declare a job: its name, payload, times and what it uses. Everything else about it follows from this.

Wrong options are refused here, when the module is imported, with the repair in the message.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from shared.declaring.job_checks import check_job
from shared.dependency import Dependency
from shared.errors import DeclarationError
from shared.files import Reach
from shared.limits import check_text
from shared.message import Message, canonical, check_key
from shared.payload import Payload
from shared.pipeline.heartbeat import BEATS_AHEAD
from shared.retry import Retry
from shared.strict_json import json_text
from shared.table import Access
from shared.wire.deposits import INLINE_BYTES, Mark
from shared.wire.parsing import read_message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from shared.declaring.upgrading import Upgrade
    from shared.unit_of_work import UnitOfWork

DEFAULT_LEASE = timedelta(seconds=30)
DEFAULT_LOCK_WAIT = timedelta(seconds=1)


class WithoutLease(StrEnum):
    """What happens to a job with a lock while Redis is gone."""

    GO_ON = "go-on"  # fenced by the conditions of its commit alone
    POSTPONE = "postpone"


class Unique(StrEnum):
    """For how long an idempotency key names one job."""

    FOR_EVER = "for-ever"  # 30 days from its end
    WHILE_ACTIVE = "while-active"  # a new request after its end is another job


Use = Access | Dependency | Reach
P = TypeVar("P", bound=Payload)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Job(Generic[P, R]):
    """A declared job type. Calling it calls the handler, as if it were not declared."""

    name: str
    version: int
    handler: Callable[[P, UnitOfWork], R]
    payload: type[P]
    timeout: timedelta
    max_latency: timedelta
    retry: Retry
    lock: Callable[[P], str | tuple[str, ...]] | None
    without_lease: WithoutLease
    lease: timedelta
    lock_wait: timedelta
    heartbeat: timedelta | None
    uses: tuple[Use, ...]
    open_to_clients: bool = False
    unique: Unique = Unique.FOR_EVER
    cron: str | None = None
    upgrades: Mapping[int, Upgrade] = field(default_factory=dict, hash=False)
    parts: tuple[Job[Any, Any], ...] = ()

    def __call__(self, payload: P, work: UnitOfWork) -> R:
        """Run the handler."""
        return self.handler(payload, work)

    @property
    def oldest(self) -> int:
        """The oldest version of its payload that is still read."""
        return min(self.upgrades, default=self.version)

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The tables this job may touch, and how."""
        return tuple(use for use in self.uses if isinstance(use, Access))

    @property
    def reaches(self) -> tuple[Reach, ...]:
        """The folders whose files this job may touch, and how."""
        return tuple(use for use in self.uses if isinstance(use, Reach))

    @property
    def dependencies(self) -> tuple[Dependency, ...]:
        """The outside systems this job may call."""
        return tuple(use for use in self.uses if isinstance(use, Dependency))

    def message(
        self,
        payload: P,
        key: str,
        *,
        record: str | None = None,
        run_at: datetime | None = None,
        tenant: str | None = None,
    ) -> Message:
        """The message that asks for this job; the key names the intent, and one key is one job.

        `record` is that of a job which a client asked for through the front door, to be run again. Before `run_at` the job
        does not run. `tenant` is whose turn it takes on a standard queue, for fairness; it decides nothing else.

        Raises:
            Malformed: the key is blank, too long, or not printable ASCII; or the consumer would refuse the payload or the tenant.
            Refused: the payload holds half a surrogate pair.
        """
        text = json_text(payload.model_dump(mode="json"))
        check_text(text, f"The payload of {self.name}")
        message = Message(self.name, self.version, check_key(key), text, record=record, run_at=run_at, tenant=tenant)
        # What the consumer would refuse is refused here; a payload that is too large to travel is deposited on the way.
        if len(text.encode()) > INLINE_BYTES:
            canonical(text)
            read_message(replace(message, payload=str(Mark.of(text))).body())
        else:
            read_message(message.body())
        return message

    def at_pace(self, pace: float) -> Job[P, R]:
        """The same job with every duration multiplied by `pace`; the local stage runs faster so."""
        return replace(
            self,
            timeout=self.timeout * pace,
            max_latency=self.max_latency * pace,
            retry=self.retry.at_pace(pace),
            lease=self.lease * pace,
            lock_wait=self.lock_wait * pace,
            heartbeat=None if self.heartbeat is None else self.heartbeat * pace,
            uses=tuple(use.at_pace(pace) if isinstance(use, Dependency) else use for use in self.uses),
        )


def job(  # noqa: PLR0913 - each is an option of the declaration, by keyword only
    name: str,
    *,
    version: int = 1,
    timeout: timedelta,
    max_latency: timedelta,
    retry: Retry | None = None,
    lock: Callable[[Any], str | tuple[str, ...]] | None = None,
    without_lease: WithoutLease = WithoutLease.GO_ON,
    lease: timedelta | None = None,
    lock_wait: timedelta | None = None,
    heartbeat: timedelta | None = None,
    uses: tuple[Use, ...] = (),
    open_to_clients: bool = False,
    unique: Unique = Unique.FOR_EVER,
    cron: str | None = None,
    upgrades: Mapping[int, Upgrade] | None = None,
    parts: tuple[Job[Any, Any], ...] = (),
) -> Callable[[Callable[[P, UnitOfWork], R]], Job[P, R]]:
    """Declare the function below as the handler of a job type.

    Args:
        name: stable name on the queue, in logs and metrics; not the function's name, so that may change.
        version: version of the payload's schema, 1 or more. Whatever changes the schema is a new version.
        timeout: how long one attempt may take.
        max_latency: the objective from enqueue to completion; an alarm watches the oldest message by it.
        retry: attempts and waits.
        lock: the lock key of a payload (`order/17`), or several; one job at a time holds each.
        without_lease: whether the job goes on, fenced by its commit, or waits while Redis is gone.
        lease: time-to-live of the lock; it is renewed at a third of it. By default 30 seconds, or three heartbeats.
        lock_wait: how long an attempt waits for a lock that another has, before its message goes back to the
            queue. By default a second, or a tenth of the timeout if that is less; never longer than the invocation can
            spare beside the job's own timeout.
        heartbeat: for long jobs: the time from one beat to the next. Claim, lock and message are then held three beats
            ahead, so that the job is back in seconds after a crash and not when the invocation would have ended.
        uses: tables, folders of files, and dependencies; permissions and network follow from them.
        open_to_clients: whether the HTTP front door accepts it, for the owner that the caller's identity gives.
        unique: whether a key names one job for ever, or only while that job is active. In the second case a request that
            is repeated after the end is another job, and does its work again.
        cron: when the job recurs: minute, hour, day of month, month, day of week, in UTC. Its payload is empty, and its
            keys are unique while it is active: an occurrence that comes while the last is still at it is left out.
        upgrades: how payloads of earlier versions become current, by version: `upgrades[1]` takes the payload of version 1
            as JSON has it, a dict whose numbers with a fraction are Decimal, and gives that of version 2. Each is pure.
            What is older than the oldest of them is dead-lettered.
        parts: job types of the same worker that it may be split into.

    Raises:
        DeclarationError: with the repair.
    """

    def declare(handler: Callable[[P, UnitOfWork], R]) -> Job[P, R]:
        declared = Job(
            name=name,
            version=version,
            handler=handler,
            payload=_payload_of(name, handler),
            timeout=timeout,
            max_latency=max_latency,
            retry=retry or Retry(),
            lock=lock,
            without_lease=without_lease,
            lease=lease or (DEFAULT_LEASE if heartbeat is None else BEATS_AHEAD * heartbeat),
            lock_wait=min(DEFAULT_LOCK_WAIT, timeout / 10) if lock_wait is None else lock_wait,
            heartbeat=heartbeat,
            uses=uses,
            open_to_clients=open_to_clients,
            unique=unique if cron is None else Unique.WHILE_ACTIVE,
            cron=cron,
            upgrades=dict(upgrades or {}),
            parts=parts,
        )
        check_job(declared)
        return declared

    return declare


def _payload_of(name: str, handler: Callable[..., object]) -> type[Any]:
    if inspect.iscoroutinefunction(handler):
        message = f"job {name!r}: its handler is async; jobs run on threads, side by side: declare it with plain `def`."
        raise DeclarationError(message)
    parameters = list(inspect.signature(handler).parameters)
    if len(parameters) != 2:  # noqa: PLR2004 - payload and work
        message = f"job {name!r}: its handler takes (payload, work), not ({', '.join(parameters)})."
        raise DeclarationError(message)
    module = inspect.getmodule(handler)
    annotation = handler.__annotations__.get(parameters[0])
    if isinstance(annotation, str):
        known = {**vars(module)} if module else {}
        closure = inspect.getclosurevars(handler)
        known.update(closure.nonlocals)
        annotation = known.get(annotation, annotation)
    if not (isinstance(annotation, type) and issubclass(annotation, Payload)):
        message = f"job {name!r}: annotate its first parameter with a subclass of Payload, not {annotation!r}."
        raise DeclarationError(message)
    return annotation


@dataclass(frozen=True, slots=True)
class JobTypes:
    """The job types that a worker knows, by name."""

    by_name: dict[str, Job[Any, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, *jobs: Job[Any, Any]) -> JobTypes:
        """Collect job types, refusing a name that stands twice.

        Raises:
            DeclarationError: with the name.
        """
        by_name: dict[str, Job[Any, Any]] = {}
        for declared in jobs:
            if declared.name in by_name:
                message = f"job {declared.name!r} is declared twice: give one of them another name."
                raise DeclarationError(message)
            by_name[declared.name] = declared
        return cls(by_name)
