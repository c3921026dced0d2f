"""What a gate says of a resource, and how resources are named: without the letters that the CDK puts behind a name."""

from __future__ import annotations

import re
from dataclasses import dataclass

NONCE = re.compile(r"(?<=[A-Za-z0-9])[0-9A-F]{8}(?![A-Za-z0-9])")


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One rule that one resource of one template does not meet.

    Attributes:
        gate: who says so.
        rule: its id there.
        resource: logical name, as `plain` gives it.
        template: the name of the audited template.
        message: in the gate's words.
    """

    gate: str
    rule: str
    resource: str
    template: str
    message: str


def plain(text: str) -> str:
    """A text that names resources, without what changes in their names from one synth to another."""
    return NONCE.sub("", text)
