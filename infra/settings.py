"""What a stage is: the settings of `cdk.json` under "stages", checked before anything is synthesised.

Contradictions are refused here, in plain Python, with the repair in the message.
"""

from __future__ import annotations

import dataclasses
import json
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from infra.identity import Identity
from shared.errors import DeclarationError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.worker import Worker

ROOT = Path(__file__).resolve().parent.parent
HOST = "host"
ARCHITECTURES = {"aarch64": "arm64", "arm64": "arm64", "x86_64": "x86_64", "amd64": "x86_64"}
# Days that CloudWatch Logs takes, by the name that CDK has for them.
LOG_RETENTION = {
    1: "ONE_DAY",
    7: "ONE_WEEK",
    14: "TWO_WEEKS",
    30: "ONE_MONTH",
    90: "THREE_MONTHS",
    180: "SIX_MONTHS",
    365: "ONE_YEAR",
    731: "TWO_YEARS",
    1827: "FIVE_YEARS",
    3653: "TEN_YEARS",
}


class Stage(BaseModel):
    """The settings of one stage.

    Attributes:
        name: its key in `cdk.json`, part of the stack's and the queues' names.
        pace: factor on every declared duration; 1 on AWS.
        architecture: processor of the functions; "host" packages for this machine.
        python: Python of the functions; "host" is the one that runs this.
        endpoints: base URL by dependency; the default of the stack's parameter `Endpoint<Name>`.
        max_concurrency: replaces the declared one of every worker.
        availability_zones: in how many the network lies; a region with fewer refuses the deploy.
        nat_gateways: how many carry the traffic of workers that call outside systems.
        alarm_email: who is told of alarms besides the topic.
        retain: whether data outlives the stack and tables refuse deletion.
        customer_key: whether queues, topic, tables and logs are encrypted by a key of the account.
        log_retention_days: how long logs are kept.
        cache_tls: whether the functions speak TLS to the cache; Valkey Serverless speaks nothing else.
        cache_cluster: whether they speak the cluster protocol to it; the same.
        identity: who may come in by the HTTP front door; without it there is none.
        cache_iam: whether they are a user of the cache, whom IAM vouches for; without users it asks nobody who it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=20)
    pace: float = Field(default=1, gt=0, allow_inf_nan=False)
    architecture: Literal["arm64", "x86_64", "host"] = "arm64"
    python: str = Field(default="3.13", pattern=r"^(3\.1[1-9]|host)$")
    endpoints: dict[str, str] = Field(default_factory=dict)
    max_concurrency: int | None = Field(default=None, ge=2, le=1000)
    availability_zones: int = Field(default=2, ge=2, le=3)
    nat_gateways: int = Field(default=1, ge=0)
    alarm_email: str | None = Field(default=None, pattern=r"^[^@\s]+@[^@\s]+$")
    retain: bool = False
    customer_key: bool = True
    log_retention_days: int = 30
    cache_tls: bool = True
    cache_cluster: bool = True
    cache_iam: bool = True
    identity: Identity | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        for contradiction in _contradictions(self):
            message = f"stage {self.name!r}: {contradiction}"
            raise DeclarationError(message)
        return self

    @property
    def on_host(self) -> bool:
        """Whether functions run on this machine's own Python and processor."""
        return self.architecture == HOST

    @property
    def processor(self) -> str:
        """The architecture, with "host" resolved."""
        return ARCHITECTURES[platform.machine().lower()] if self.on_host else self.architecture

    @property
    def python_version(self) -> str:
        """The Python, with "host" resolved."""
        return f"{sys.version_info.major}.{sys.version_info.minor}" if self.python == HOST else self.python

    def at(self, worker: Worker) -> Worker:
        """A declared worker as this stage runs it."""
        paced = worker.at_pace(self.pace)
        if self.max_concurrency is None:
            return paced
        return dataclasses.replace(paced, max_concurrency=self.max_concurrency)


def _contradictions(stage: Stage) -> list[str]:
    found = []
    if (stage.architecture == HOST) != (stage.python == HOST):
        found.append(
            f"architecture={stage.architecture!r} and python={stage.python!r}: a function runs either on this host or"
            " on Lambda; set both to 'host' or neither."
        )
    if stage.retain and (stage.on_host or stage.pace != 1 or not stage.customer_key):
        found.append(
            "retain=true keeps real data, which goes with architecture and python of Lambda, pace=1 and"
            " customer_key=true: set these, or retain=false."
        )
    if not stage.on_host and not (stage.cache_tls and stage.cache_cluster):
        found.append(
            f"cache_tls={stage.cache_tls} and cache_cluster={stage.cache_cluster}: Valkey Serverless speaks TLS and the"
            " cluster protocol and nothing else; leave both out, they are true by default."
        )
    if not stage.on_host and not stage.cache_iam:
        found.append(
            "cache_iam=False: whoever reaches the cache could read and change what it holds; leave it out, it is true"
            " by default."
        )
    if stage.nat_gateways > stage.availability_zones:
        found.append(
            f"nat_gateways={stage.nat_gateways} in availability_zones={stage.availability_zones}: one a zone is the"
            " most that helps; lower the first or raise the second."
        )
    if stage.log_retention_days not in LOG_RETENTION:
        found.append(f"log_retention_days={stage.log_retention_days}: choose one of {sorted(LOG_RETENTION)}.")
    return [*found, *_wrong_addresses(stage)]


def _wrong_addresses(stage: Stage) -> list[str]:
    """Addresses that are none, or that would be spoken to in clear off this host."""
    found = []
    if stage.identity is not None and not stage.on_host and (stage.identity.issuer or "https:").startswith("http:"):
        found.append(
            f"identity: issuer={stage.identity.issuer!r}: give the issuer of the tokens, off this host an https URL."
        )
    for name, url in stage.endpoints.items():
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            found.append(f"endpoint of {name!r} is {url!r}: give a base URL like 'https://api.example.com/v1'.")
        elif parts.scheme == "http" and not stage.on_host:
            found.append(f"endpoint of {name!r} is {url!r}: off this host use https.")
    return found


def load_stage(name: str, stages: Mapping[str, object] | None = None) -> Stage:
    """The stage of that name, out of `stages` or else `cdk.json`.

    Raises:
        SettingsError: `cdk.json` is not of the shape that holds stages.
        DeclarationError: the stage is unknown, or its settings contradict each other; with the repair.
    """
    known = read_context().get("stages") if stages is None else stages
    if not isinstance(known, dict):
        message = "cdk.json: the context key 'stages' must be an object of stages by name."
        raise SettingsError(message)
    if name not in known:
        message = f"stage {name!r} is not in cdk.json: choose one of {sorted(known)} or add it under 'stages'."
        raise DeclarationError(message)
    settings = known[name]
    if not isinstance(settings, dict) or "name" in settings:
        message = (
            f"stage {name!r} in cdk.json is {json.dumps(settings)}: give an object of settings without 'name', or {{}}"
            " for the defaults."
        )
        raise SettingsError(message)
    try:
        return Stage(name=name, **settings)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        message = f"stage {name!r} in cdk.json: {problems}."
        raise DeclarationError(message) from error


def read_context() -> dict[str, object]:
    """The context of `cdk.json`, which the CDK command line would pass in."""
    context: dict[str, object] = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    return context
