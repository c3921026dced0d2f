"""What some settings of a stage are chosen from."""

from __future__ import annotations

from typing import Literal

HOST = "host"
ARCHITECTURES = {"aarch64": "arm64", "arm64": "arm64", "x86_64": "x86_64", "amd64": "x86_64"}
CANARY = "canary"  # the worker whose rounds go through the whole stack
NAME = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
AT_ONCE: Literal["all-at-once"] = "all-at-once"
# CodeDeploy's own configurations, by the names that it has for them.
Rollout = Literal[
    "all-at-once",
    "canary-10-percent-5-minutes",
    "canary-10-percent-10-minutes",
    "canary-10-percent-15-minutes",
    "canary-10-percent-30-minutes",
    "linear-10-percent-every-1-minute",
    "linear-10-percent-every-2-minutes",
    "linear-10-percent-every-3-minutes",
    "linear-10-percent-every-10-minutes",
]
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
