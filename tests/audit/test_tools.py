"""How the tools are asked: by which words, and over what; and cdk-nag itself, which needs nothing but Node.js."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from audit.findings import Finding
from audit.gates import GATES, cdk_nag, cfn_lint, checkov, look
from audit.templates import Audited, write
from audit.tools import GateError, run
from infra.stage.settings import ROOT
from tests.audit.planted import DEFECTS, planted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from audit.gates import Gate

SOME = [Audited("dev", ROOT / "dev.template.json", retain=False)]
EMPTY = '{"summary": {"parsing_errors": 0, "resource_count": 1}, "results": {"failed_checks": []}}'


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of the command, instead of running it."""
    words: list[str] = []

    def note(command: tuple[str, ...], **_: Any) -> str:
        words.extend(command)
        return EMPTY if "checkov" in command[0] else "[]"

    monkeypatch.setattr("audit.gates.run", note)
    return words


@pytest.mark.parametrize(
    ("gate", "words"),
    [(cfn_lint, ["--append-rules", "cfn_lint_serverless.rules"]), (checkov, ["--skip-download"])],
)
def test_a_tool_is_asked_for_all_its_rules_and_downloads_none(
    asked: list[str], gate: Callable[[list[Audited]], object], words: list[str]
) -> None:
    gate(SOME)
    assert [word for word in asked if word in words] == words
    assert str(SOME[0].path) in asked


def test_cdk_nag_has_the_two_packs_and_the_one_of_our_own(tmp_path: Path) -> None:
    found = {(finding.rule, finding.resource) for finding in cdk_nag([write("planted", planted(), tmp_path)])}
    assert {(defect.rule, defect.name) for defect in DEFECTS if defect.gate == "cdk-nag"} <= found


def test_a_gate_that_could_not_look_is_not_green() -> None:
    with pytest.raises(GateError, match="has judged nothing"):
        run(("false",), accepted=frozenset({0}))


def test_what_a_gate_runs_reaches_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    shown = run(("env",), accepted=frozenset({0}))
    assert "HTTPS_PROXY=http://127.0.0.1:9" in shown
    assert "NO_PROXY=*" not in shown
    assert "AWS_ACCESS_KEY_ID" not in shown


def test_every_gate_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("audit.gates.make_environment", lambda: None)
    monkeypatch.setattr("audit.gates.node_modules", lambda: None)
    asked: list[str] = []

    def gate(name: str) -> Gate:
        def looks(templates: Sequence[Audited]) -> list[Finding]:
            asked.append(name)
            return [Finding(name, "rule", "resource", "dev", "is wrong")]

        return looks

    found, seconds = look([], {name: gate(name) for name in GATES})
    assert sorted(asked) == sorted(GATES)
    assert [finding.gate for finding in found] == list(seconds) == list(GATES)
