"""`make audit`: what it says, and its exit status."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from rich.console import Console

from audit import __main__ as command
from audit.exceptions import Judgement
from audit.findings import Finding
from audit.gates import checkov
from audit.table import Report
from audit.templates import Audited, stages
from audit.tools import GateError
from infra.stage.settings import ROOT

OPEN = Finding("checkov", "CKV_AWS_27", "Jobs", "prod", "is in [clear]")
CLEAN = Report(("dev", "prod"), {"checkov": 1.04}, Judgement((), (OPEN,), ()))
FOUND = Report(("dev", "prod"), {"checkov": 1.04}, Judgement((OPEN,), (), ()))
OUTDATED = Report(("dev", "prod"), {"checkov": 1.04}, Judgement((), (), ("an exception has expired",)))


@pytest.mark.parametrize(("report", "status"), [(CLEAN, 0), (FOUND, 1), (OUTDATED, 1)])
def test_the_exit_status_tells_whether_something_is_left_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], report: Report, status: int
) -> None:
    monkeypatch.setattr(command, "audit", lambda progress: report)
    assert command.main(["--json"]) == status
    assert json.loads(capsys.readouterr().out)["ok"] is (status == 0)


def test_a_gate_that_could_not_look_has_a_status_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(progress: object) -> Report:
        raise GateError("checkov ended with 3")

    monkeypatch.setattr(command, "audit", fails)
    assert command.main([]) == 2
    assert "checkov ended with 3" in capsys.readouterr().err


def test_the_table_shows_gates_and_each_open_finding() -> None:
    written = StringIO()
    FOUND.show(Console(file=written, width=120))
    assert "open in dev, prod" in written.getvalue()
    assert "checkov CKV_AWS_27  prod: Jobs  is in [clear]" in written.getvalue()


def test_programs_get_one_object() -> None:
    whole = json.loads(FOUND.as_json())
    assert whole["gates"] == [{"gate": "checkov", "open": 1, "excused": 0, "seconds": 1.0}]
    assert whole["open"] == [
        {"gate": "checkov", "rule": "CKV_AWS_27", "resource": "Jobs", "template": "prod", "message": "is in [clear]"}
    ]


@pytest.mark.parametrize(
    "told",
    [
        {
            "summary": {"parsing_errors": 1, "resource_count": 3},
            "results": {"parsing_errors": ["x"], "failed_checks": []},
        },
        {"summary": {"parsing_errors": 0, "resource_count": 0}, "results": {"failed_checks": []}},
        {"passed": 0, "failed": 0, "parsing_errors": 0, "resource_count": 0},
    ],
)
def test_checkov_that_read_nothing_is_not_green(monkeypatch: pytest.MonkeyPatch, told: object) -> None:
    monkeypatch.setattr("audit.gates.run", lambda *_, **__: json.dumps(told))
    with pytest.raises(GateError):
        checkov([Audited("dev", ROOT / "dev.template.json", retain=False)])


def test_every_stage_but_the_local_one_is_audited_with_a_front_door() -> None:
    assert [stage.name for stage in stages()] == ["dev", "staging", "prod"]
    assert all(stage.identity for stage in stages())
    assert [stage.retain for stage in stages()] == [False, False, True]
