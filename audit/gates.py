"""The gates: each reads all audited templates and tells what it finds. What is an exception is not their affair."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from audit.findings import Finding, plain
from audit.policies import policies
from audit.rules import RULES
from audit.template import Template
from audit.tools import BIN, PROJECT, GateError, make_environment, node_modules, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from audit.templates import Audited

    Gate = Callable[[Sequence[Audited]], list[Finding]]

Json = Any
CODE = PROJECT.parent
AT_ONCE = 2
CLEAN = frozenset({0})
CLEAN_OR_FAILED = frozenset({0, 1})
ANY_LEVELS = frozenset(range(16))  # cfn-lint adds 2 for errors, 4 for warnings, 8 for informations


def cdk_nag(templates: Sequence[Audited]) -> list[Finding]:
    """AwsSolutions, Serverless, and the rules that are in no pack of use here (`nag.js`)."""
    node = os.environ.get("JSII_NODE", "node")
    named = [f"{audited.name}={audited.path}" for audited in templates]
    told = run((node, str(CODE / "nag.js"), *named), accepted=CLEAN, environ={"NODE_PATH": str(node_modules())})
    return [_finding("cdk-nag", f["rule"], f["resource"], f["template"], f["message"]) for f in _read(told)]


def cfn_lint(templates: Sequence[Audited]) -> list[Finding]:
    """cfn-lint: what CloudFormation would refuse, and the rules of cfn-lint-serverless."""
    names = {str(audited.path): audited.name for audited in templates}
    told = run(
        (str(BIN / "cfn-lint"), "--append-rules", "cfn_lint_serverless.rules", "--format", "json", "--", *names),
        accepted=ANY_LEVELS,
    )
    return [
        _finding("cfn-lint", f["Rule"]["Id"], _resource(f["Location"]["Path"]), names[f["Filename"]], f["Message"])
        for f in _read(told)
    ]


def checkov(templates: Sequence[Audited]) -> list[Finding]:
    """The rules of checkov for CloudFormation.

    Raises:
        GateError: it could not read one of the templates, which it calls no failure.
    """
    names = {str(audited.path): audited.name for audited in templates}
    told = run(
        (
            *(str(BIN / "checkov"), "--framework", "cloudformation", "--skip-download"),
            *("--quiet", "--compact", "--output", "json", "--file", *names),
        ),
        accepted=CLEAN_OR_FAILED,
    )
    report = _read(told)
    if not report.get("summary", {}).get("resource_count"):
        raise GateError("checkov has found no resource in any template: it has judged nothing.")
    if report["summary"]["parsing_errors"]:
        raise GateError(f"checkov cannot read {report['results']['parsing_errors']}.")
    return [
        _finding("checkov", f["check_id"], f["resource"].split(".")[1], names[f["file_abs_path"]], f["check_name"])
        for f in report["results"]["failed_checks"]
    ]


def parliament(templates: Sequence[Audited]) -> list[Finding]:
    """parliament: whether each action of a role exists and fits to its resource."""
    documents = {
        f"{audited.name} {number} {name}": document
        for audited in templates
        for number, (name, document) in enumerate(policies(Template.read(audited)))
    }
    told = run(
        (str(BIN / "python"), "-W", "ignore", str(CODE / "policy_lint.py")), accepted=CLEAN, said=json.dumps(documents)
    )
    found = []
    for each in _read(told):
        template, _, resource = each["policy"].split(" ")
        rule = _spelled(each["issue"], each["thing"])
        found.append(_finding("parliament", rule, resource, template, f"{each['message']} {each['thing']}".rstrip()))
    return found


def ours(templates: Sequence[Audited]) -> list[Finding]:
    """The rules that no tool has (`rules.py`)."""
    return [
        _finding("ours", _spelled(rule, fault.thing), fault.resource, audited.name, fault.message)
        for audited in templates
        for rule, look in RULES.items()
        for fault in look(Template.read(audited))
    ]


GATES: dict[str, Gate] = {
    "cdk-nag": cdk_nag,
    "cfn-lint": cfn_lint,
    "checkov": checkov,
    "parliament": parliament,
    "ours": ours,
}


def look(
    templates: Sequence[Audited], gates: Mapping[str, Gate] = GATES, progress: Callable[[str], object] = str
) -> tuple[list[Finding], dict[str, float]]:
    """Let all gates look, some at a time; gives what they found and how many seconds each took.

    Raises:
        GateError: the tools cannot be made, or a gate could not look.
    """
    progress("making the tools ...")
    make_environment()
    node_modules()
    found: list[Finding] = []
    seconds: dict[str, float] = {}

    def timed(name: str) -> list[Finding]:
        started = time.monotonic()
        seen = gates[name](templates)
        seconds[name] = time.monotonic() - started
        progress(f"{name}: {len(seen)} findings before exceptions, {seconds[name]:.1f} s")
        return seen

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for seen in pool.map(timed, gates):
            found += seen
    return found, {name: seconds[name] for name in gates}


def _spelled(rule: str, thing: str) -> str:
    """A rule's id with the one thing of several that it is about, as cdk-nag spells it."""
    return f"{rule}[{thing}]" if thing else rule


def _finding(gate: str, rule: str, resource: str, template: str, message: str) -> Finding:
    return Finding(gate, plain(rule), plain(resource), template, plain(message))


def _resource(path: Iterable[object]) -> str:
    match [str(part) for part in path]:
        case ["Resources", name, *_]:
            return name
        case parts:
            return "/".join(parts) or "template"


def _read(told: str) -> Json:
    try:
        return json.loads(told)
    except json.JSONDecodeError as error:
        raise GateError(f"a tool wrote something else than JSON: {told[:500]!r}") from error
