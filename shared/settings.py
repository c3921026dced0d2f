"""What a deployed function is told by its environment. Infra writes these names through `to_environ`, code reads them back.

A name is spelled once, here. Values that are secret never stand in the environment.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING

from shared.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "TAHAN_"
_MAPS = {
    "tables": "TABLE_",
    "buckets": "BUCKET_",
    "queues": "QUEUE_",
    "dead_letter_queues": "DEAD_LETTER_QUEUE_",
    "endpoints": "ENDPOINT_",
    "routes": "ROUTE_",
    "recurring": "RECURRING_",
    "mappings": "MAPPING_",
    "gates": "GATE_",
    "needs": "NEEDS_",
}


@dataclass(frozen=True, slots=True)
class OwnerLimits:
    """What one owner may ask of the front door.

    Attributes:
        requests_per_second: of any kind, in the long run.
        burst: requests at once after a rest.
        unfinished: operations that have not ended.
    """

    requests_per_second: int
    burst: int
    unfinished: int


@dataclass(frozen=True, slots=True)
class Settings:
    """Names and addresses of the stack that a function works in.

    Attributes:
        jobs_table: name of the table of job records.
        outbox_table: name of the outbox table.
        tables: names of business tables by logical name.
        buckets: names of buckets by logical name.
        queues: queue URLs by worker.
        dead_letter_queues: their dead-letter queues' URLs by worker.
        endpoints: base URLs of dependencies by name.
        routes: workers by job type, but for those of FIFO queues.
        recurring: version of the payload and cron expression by job type ("1 */15 * * * *").
        mappings: id and concurrency of each worker's event source mapping ("<uuid> 20").
        gates: what is known of each gate from outside: longest call, longest pause and ramp, in seconds ("10 300 60").
        needs: the dependencies without which a worker does nothing, by worker ("payment-provider").
        cache_host: host of Valkey; empty where a function uses none.
        cache_port: its port.
        cache_tls: whether to speak TLS.
        cache_cluster: whether it speaks the cluster protocol (Valkey Serverless does).
        cache_user: user of ElastiCache that the function is, by IAM; empty where the cache asks nobody who it is.
        cache_name: name of the cache, which that user's token is signed for.
        pace: factor on every declared duration; 1 but for the local stage.
        owner_limits: what one owner may ask; only the front door is told.
    """

    jobs_table: str
    outbox_table: str
    tables: Mapping[str, str] = field(default_factory=dict)
    buckets: Mapping[str, str] = field(default_factory=dict)
    queues: Mapping[str, str] = field(default_factory=dict)
    dead_letter_queues: Mapping[str, str] = field(default_factory=dict)
    endpoints: Mapping[str, str] = field(default_factory=dict)
    routes: Mapping[str, str] = field(default_factory=dict)
    recurring: Mapping[str, str] = field(default_factory=dict)
    mappings: Mapping[str, str] = field(default_factory=dict)
    gates: Mapping[str, str] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)
    cache_host: str = ""
    cache_port: str = "6379"
    cache_tls: bool = True
    cache_cluster: bool = True
    cache_user: str = ""
    cache_name: str = ""
    pace: float = 1.0
    owner_limits: OwnerLimits | None = None

    def to_environ(self) -> dict[str, str]:
        """The environment variables that `from_environ` reads back; values may be CDK tokens."""
        environ = {
            f"{PREFIX}JOBS_TABLE": self.jobs_table,
            f"{PREFIX}OUTBOX_TABLE": self.outbox_table,
            f"{PREFIX}CACHE_HOST": self.cache_host,
            f"{PREFIX}CACHE_PORT": self.cache_port,
            f"{PREFIX}CACHE_TLS": str(self.cache_tls).lower(),
            f"{PREFIX}CACHE_CLUSTER": str(self.cache_cluster).lower(),
            f"{PREFIX}CACHE_USER": self.cache_user,
            f"{PREFIX}CACHE_NAME": self.cache_name,
            f"{PREFIX}PACE": str(self.pace),
        }
        if self.owner_limits is not None:
            environ[f"{PREFIX}OWNER_LIMITS"] = ",".join(map(str, astuple(self.owner_limits)))
        return environ | self.maps_to_environ()

    def maps_to_environ(self) -> dict[str, str]:
        """Those of them that grow with the workers of a stack."""
        return {
            f"{PREFIX}{infix}{name.upper().replace('-', '_')}": value
            for attribute, infix in _MAPS.items()
            for name, value in getattr(self, attribute).items()
        }

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Settings:
        """Read the settings back.

        Raises:
            SettingsError: naming the variable that is missing or cannot be read.
        """
        maps: dict[str, dict[str, str]] = {}
        for attribute, infix in _MAPS.items():
            start = f"{PREFIX}{infix}"
            maps[attribute] = {
                name.removeprefix(start).lower().replace("_", "-"): value
                for name, value in environ.items()
                if name.startswith(start)
            }
        pace = _read(environ, "PACE", default="1")
        try:
            pace_number = float(pace)
        except ValueError as error:
            message = f"{PREFIX}PACE={pace!r} is no number: set 1 on AWS."
            raise SettingsError(message) from error
        return cls(
            jobs_table=_read(environ, "JOBS_TABLE"),
            outbox_table=_read(environ, "OUTBOX_TABLE"),
            cache_host=_read(environ, "CACHE_HOST", default=""),
            cache_port=_read(environ, "CACHE_PORT", default="6379"),
            cache_tls=_flag(environ, "CACHE_TLS"),
            cache_cluster=_flag(environ, "CACHE_CLUSTER"),
            cache_user=_read(environ, "CACHE_USER", default=""),
            cache_name=_read(environ, "CACHE_NAME", default=""),
            pace=pace_number,
            owner_limits=_owner_limits(environ),
            **maps,
        )


def _read(environ: Mapping[str, str], name: str, default: str | None = None) -> str:
    value = environ.get(PREFIX + name, default)
    if value is None:
        message = f"{PREFIX}{name} is not set: deploy the function through infra, which sets it."
        raise SettingsError(message)
    return value


def _owner_limits(environ: Mapping[str, str]) -> OwnerLimits | None:
    value = environ.get(f"{PREFIX}OWNER_LIMITS")
    if value is None:
        return None
    try:
        per_second, burst, unfinished = map(int, value.split(","))
    except ValueError as error:
        message = f"{PREFIX}OWNER_LIMITS={value!r}: set three whole numbers, like 20,40,1000."
        raise SettingsError(message) from error
    return OwnerLimits(per_second, burst, unfinished)


def _flag(environ: Mapping[str, str], name: str) -> bool:
    value = _read(environ, name, default="true")
    if value not in {"true", "false"}:
        message = f"{PREFIX}{name}={value!r}: set true or false."
        raise SettingsError(message)
    return value == "true"
