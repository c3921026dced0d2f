"""parliament over policies: runs in the tools' environment, policies by name on stdin, what it finds as JSON on stdout."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from parliament import analyze_policy_string, enhance_finding

if TYPE_CHECKING:
    from parliament.finding import Finding


def things(finding: Finding) -> list[str]:
    """The actions that a finding is about, each a finding of its own here; the empty one if it is about a whole policy."""
    details = finding.detail if isinstance(finding.detail, list) else []
    return [each["action"] if isinstance(each, dict) else str(each) for each in details] or [""]


def main() -> None:
    """Judge each policy."""
    found = [
        {"policy": name, "issue": finding.issue, "thing": thing, "message": finding.title}
        for name, document in json.load(sys.stdin).items()
        for finding in map(enhance_finding, analyze_policy_string(json.dumps(document)).findings)
        if finding.severity != "MUTE"
        for thing in things(finding)
    ]
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
