"""What the functions of a local stack have written, as the stand-in keeps it in its CloudWatch Logs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from local.stack.clients import client
from watch.series import Name
from watch.template import resources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from watch.template import Template

_REPORT = re.compile(r"REPORT .*?Duration: ([\d.]+) ms")
_FAILED = re.compile(r"^\[ERROR\]|Task timed out|Runtime\.ExitError", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Said:
    """One sample of a metric, and the second in which it was told."""

    at: float
    name: Name
    samples: list[float]


def said(endpoint: str, template: Template, physical: Mapping[str, str]) -> Iterator[Said]:
    """All that the functions told: their metrics, and of each invocation that it was, and how long it took.

    Args:
        endpoint: of the stand-in.
        template: names the functions and their log groups.
        physical: the names of resources by their logical ones.
    """
    logs = client(endpoint, "logs")
    for logical, properties in resources(template, "AWS::Lambda::Function").items():
        group = physical[properties["LoggingConfig"]["LogGroup"]["Ref"]]
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group):
            for event in page["events"]:
                yield from _of_event(event["timestamp"] / 1000, logical, event["message"])


def _of_event(at: float, function: str, message: str) -> Iterator[Said]:
    dimensions = {"FunctionName": f"<{function}>"}
    for duration in _REPORT.findall(message):
        yield Said(at, Name.of("AWS/Lambda", "Invocations", dimensions), [1])
        yield Said(at, Name.of("AWS/Lambda", "Errors", dimensions), [0])
        yield Said(at, Name.of("AWS/Lambda", "Duration", dimensions), [float(duration)])
    if _FAILED.search(message):
        yield Said(at, Name.of("AWS/Lambda", "Errors", dimensions), [1])
    for text in message.splitlines():
        if '"_aws"' in text:
            try:
                line = json.loads(text)
            except ValueError:  # of a process that was killed while it wrote
                continue
            yield from _of_line(line)


def _of_line(line: Mapping[str, Any]) -> Iterator[Said]:
    """What a line in the embedded metric format tells of its service as a whole."""
    for metrics in line["_aws"]["CloudWatchMetrics"]:
        if ["service"] in metrics["Dimensions"]:
            for metric in metrics["Metrics"]:
                name = Name.of(metrics["Namespace"], metric["Name"], {"service": line["service"]})
                yield Said(line["_aws"]["Timestamp"] / 1000, name, list(line[metric["Name"]]))
