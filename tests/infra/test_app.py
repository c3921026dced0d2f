"""The app as it is started: by the CDK command line or without it, and what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.app import build, new_app
from infra.stage.settings import ROOT, Stage
from tests.infra.declared import READING

if TYPE_CHECKING:
    from collections.abc import Callable

# What the CDK command line passes in by its defaults.
OF_THE_COMMAND_LINE = {"aws:cdk:enable-path-metadata": True, "aws:cdk:enable-asset-metadata": True}
TEMPLATE = """
import json, sys
from aws_cdk import CfnOutput, CfnResource, Stack
from infra.app import new_app
app = new_app()
stack = Stack(app, "probe")
resource = CfnResource(stack, "Probe", type="AWS::SNS::Topic")
print(json.dumps(app.synth().get_stack_by_name("probe").template["Resources"]))
print(json.dumps([app.node.try_get_context(name) for name in sys.argv[1:]]))
"""


def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own words
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_under_the_command_line_the_template_is_the_same() -> None:
    ran = run("-c", TEMPLATE, *OF_THE_COMMAND_LINE, CDK_CONTEXT_JSON=json.dumps(OF_THE_COMMAND_LINE))
    assert ran.returncode == 0, ran.stderr
    resources, context = map(json.loads, ran.stdout.splitlines())
    assert resources == {"Probe": {"Type": "AWS::SNS::Topic"}}
    assert context == [False, False]


def test_a_refusal_is_one_sentence_and_no_traceback(tmp_path: Path) -> None:
    ran = run("-m", "infra.app", STAGE="stage", CDK_OUTDIR=str(tmp_path))
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith("stage 'stage' is not in cdk.json: choose one of")
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("settings", "warned"),
    [({"retain": True}, True), ({"retain": True, "alarm_emails": ["on-call@example.com"]}, False), ({}, False)],
)
def test_alarms_about_real_data_that_reach_nobody_are_warned_of(
    package: Callable[[str], Path], settings: dict[str, object], warned: bool
) -> None:
    stage = Stage.model_validate({"name": "kept", **settings})
    app = new_app()
    stack = build(app, [READING], stage, package)
    assembly = Path(app.synth().directory)
    metadata = json.loads((assembly / f"{stack.artifact_id}.metadata.json").read_text(encoding="utf-8"))
    said = [entry["data"] for entries in metadata.values() for entry in entries if entry["type"] == "aws:cdk:warning"]
    assert [s for s in said if s.startswith("stage 'kept' keeps real data and its alarms reach nobody")] == said
    assert bool(said) == warned
