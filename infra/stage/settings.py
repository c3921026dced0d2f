"""What a stage is: the settings of `cdk.json` under "stages", checked before anything is synthesised (`contradictions.py`)."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from infra.stage.alarm_settings import AlarmSettings
from infra.stage.brought import KEY_ARN, TOPIC_ARN, ExistingNetwork
from infra.stage.choices import ARCHITECTURES, AT_ONCE, CANARY, HOST, NAME, Rollout
from infra.stage.contradictions import contradictions
from infra.stage.identity import Identity
from infra.stage.sizes import Size
from shared.errors import DeclarationError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.worker import Worker

ROOT = Path(__file__).resolve().parents[2]


class Stage(BaseModel):
    """The settings of one stage.

    Attributes:
        name: its key in `cdk.json`, part of the stack's and the queues' names.
        prefix: what those names begin with.
        pace: factor on every declared duration; 1 on AWS.
        architecture: processor of the functions; "host" packages for this machine.
        python: Python of the functions; "host" is the one that runs this.
        endpoints: base URL by dependency; the default of the stack's parameter `Endpoint<Name>`.
        max_concurrency: replaces the declared one of every worker.
        sizes: by worker, or "front-door": memory and concurrency in place of the declared.
        network: a VPC that is there already; without it the stack makes one.
        availability_zones: in how many the stack's network lies; a region with fewer refuses the deploy.
        nat_gateways: how many carry the traffic of workers that call outside systems.
        alarm_emails: who is told of alarms by mail; each confirms once.
        alarm_topic_arn: a topic that is there already, told of alarms in place of one of the stack's.
        retain: whether data outlives the stack and tables refuse deletion.
        customer_key: whether queues, topic, tables and logs are encrypted by a key of the account.
        key_arn: that key, if it is there already; without it the stack makes one.
        log_retention_days: how long logs are kept.
        rollout: how a new version takes over: at once, or a tenth first, watched by alarms that bring back the old one.
        canary: whether a canary goes through the stack every minute, watched by an alarm.
        snap_start: whether versions begin from a snapshot of their initialised state.
        alarms: when alarms ring, where that differs from the defaults.
        cache_tls: whether the functions speak TLS to the cache; Valkey Serverless speaks nothing else.
        cache_cluster: whether they speak the cluster protocol to it; the same.
        identity: who may come in by the HTTP front door; without it there is none.
        cache_iam: whether they are a user of the cache, whom IAM vouches for; without users it asks nobody who it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=NAME, max_length=20)
    prefix: str = Field(default="tahan", pattern=NAME, max_length=20)
    pace: float = Field(default=1, gt=0, allow_inf_nan=False)
    architecture: Literal["arm64", "x86_64", "host"] = "arm64"
    python: str = Field(default="3.13", pattern=r"^(3\.1[1-9]|host)$")
    endpoints: dict[str, str] = Field(default_factory=dict)
    max_concurrency: int | None = Field(default=None, ge=2, le=1000)
    sizes: dict[str, Size] = Field(default_factory=dict)
    network: ExistingNetwork | None = None
    availability_zones: int = Field(default=2, ge=2, le=3)
    nat_gateways: int = Field(default=1, ge=0)
    alarm_emails: tuple[Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")], ...] = ()
    alarm_topic_arn: str | None = Field(default=None, pattern=TOPIC_ARN)
    retain: bool = False
    customer_key: bool = True
    key_arn: str | None = Field(default=None, pattern=KEY_ARN)
    log_retention_days: int = 30
    cache_tls: bool = True
    cache_cluster: bool = True
    cache_iam: bool = True
    identity: Identity | None = None
    rollout: Rollout = AT_ONCE
    canary: bool = True
    snap_start: bool = False
    alarms: AlarmSettings = Field(default_factory=AlarmSettings)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        for contradiction in contradictions(self):
            raise DeclarationError(contradiction)
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
        if not self.canary and worker.name == CANARY:
            worker = replace(worker, jobs=tuple(replace(each, cron=None) for each in worker.jobs))
        everywhere = Size(max_concurrency=self.max_concurrency).of(worker.at_pace(self.pace))
        return self.sizes.get(worker.name, Size()).of(everywhere)


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
    except DeclarationError as error:
        message = f"stage {name!r} in cdk.json: {error}"
        raise DeclarationError(message) from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        message = f"stage {name!r} in cdk.json: {problems}."
        raise DeclarationError(message) from error


def read_context() -> dict[str, object]:
    """The context of `cdk.json`, which the CDK command line would pass in."""
    context: dict[str, object] = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    return context
