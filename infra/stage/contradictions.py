"""Settings of a stage that contradict each other, each with its repair. Plain Python, no CDK."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from infra.stage.choices import AT_ONCE, HOST, LOG_RETENTION
from infra.stage.sizes import FRONT_DOOR

if TYPE_CHECKING:
    from infra.stage.settings import Stage

TOO_OLD_TO_SNAP = ("3.11",)
OF_OUR_NETWORK = ("availability_zones", "nat_gateways")


def contradictions(stage: Stage) -> list[str]:
    """What is wrong with a stage, a sentence each."""
    return [
        *_of_the_host(stage),
        *_of_aws(stage),
        *_of_what_is_brought(stage),
        *_of_rollout(stage),
        *_of_addresses(stage),
    ]


def _of_the_host(stage: Stage) -> list[str]:
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
    if stage.on_host and stage.rollout != AT_ONCE:
        found.append(
            f"rollout={stage.rollout!r}: this host has no CodeDeploy; leave it out, it is {AT_ONCE!r} by default."
        )
    return found


def _of_aws(stage: Stage) -> list[str]:
    found = []
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
    if stage.network is None and stage.nat_gateways > stage.availability_zones:
        found.append(
            f"nat_gateways={stage.nat_gateways} in availability_zones={stage.availability_zones}: one a zone is the"
            " most that helps; lower the first or raise the second."
        )
    if stage.log_retention_days not in LOG_RETENTION:
        found.append(f"log_retention_days={stage.log_retention_days}: choose one of {sorted(LOG_RETENTION)}.")
    return found


def _of_what_is_brought(stage: Stage) -> list[str]:
    """A thing that is there already is not also made, nor changed."""
    found = []
    ours = [name for name in OF_OUR_NETWORK if name in stage.model_fields_set]
    if stage.network is not None and ours:
        found.append(
            f"network={stage.network.vpc!r} and {', '.join(ours)}: a network that is there already has its zones and its"
            f" ways out; leave out {' and '.join(ours)}, or network."
        )
    if stage.key_arn is not None and not stage.customer_key:
        found.append(f"key_arn={stage.key_arn!r} and customer_key=false: leave one of them out.")
    if stage.alarm_topic_arn is not None and stage.alarm_emails:
        found.append(
            f"alarm_topic_arn={stage.alarm_topic_arn!r} and alarm_emails={list(stage.alarm_emails)}: a topic that is"
            " there already has its own subscribers; leave one of them out."
        )
    return found


def _of_rollout(stage: Stage) -> list[str]:
    found = []
    for name, size in stage.sizes.items():
        if stage.snap_start and size.provisioned_concurrency is not None:
            found.append(
                f"snap_start=true and provisioned_concurrency={size.provisioned_concurrency} of {name!r}: Lambda takes"
                " one of them; leave the other out."
            )
        if (size.provisioned_concurrency or 0) > (size.reserved_concurrency or size.provisioned_concurrency or 0):
            found.append(
                f"sizes of {name!r}: provisioned_concurrency={size.provisioned_concurrency} is over"
                f" reserved_concurrency={size.reserved_concurrency}: lower the first or raise the second."
            )
        if name == FRONT_DOOR and size.max_concurrency is not None:
            found.append(
                f"sizes of {name!r}: max_concurrency={size.max_concurrency} is of a queue's mapping, which the front"
                " door has not: set reserved_concurrency."
            )
        if name == FRONT_DOOR and stage.identity is None:
            found.append(f"sizes of {name!r}: without identity there is no front door; give one, or leave it out.")
    if stage.snap_start and stage.python in TOO_OLD_TO_SNAP:
        found.append(
            f"snap_start=true and python={stage.python!r}: Lambda takes snapshots from 3.12 on; leave one out."
        )
    if stage.snap_start and stage.on_host:
        found.append("snap_start=true: this host takes no snapshots; leave it out.")
    return found


def _of_addresses(stage: Stage) -> list[str]:
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
