"""Alarms, guides and pages belong together; what a page tells people to type or to look at is there."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from functools import cache

import botocore.session
import pytest
from botocore import xform_name

from functions.payments import WORKER
from infra.alarms.alarm import Runbook
from infra.alarms.function import version_alarm
from infra.alarms.guides import COMES_WITH, FOLDER, INDEX, Guide, index
from infra.alarms.page import groups
from infra.stage.alarm_settings import AlarmSettings
from infra.stage.settings import ROOT, Stage
from infra.stage.sizes import Size
from ops.cli import parser
from shared.dependency import Dependency
from shared.job import Job
from shared.metrics import KINDS
from shared.outcome import Because
from shared.retry import Retry
from shared.worker import Worker
from tests import runbooks

PAGES = sorted(path.stem for path in FOLDER.glob("*.md") if path != INDEX)
PARTS = ("**What it means.**", "**Look at.**", "**Do.**", "**When is replay safe.**")
NAME = re.compile(r"`([a-z]+(?:_[a-z0-9]+)+)`")
AWS = re.compile(r"^ {4}(aws .+)$", re.MULTILINE)
CLI_ALONE = {"logs tail"}  # of the AWS command line, and no operation of the service


def alarms() -> list[str]:
    found = groups(WORKER, AlarmSettings())
    named = [alarm.runbook for of in found.values() for alarm in of]
    return sorted({*named, version_alarm("it", "function", "alias", "1").runbook})


def test_every_alarm_has_a_page_and_every_page_an_alarm_or_a_guide() -> None:
    assert sorted(Runbook) == alarms()
    assert sorted({*Runbook, *Guide}) == PAGES


def test_every_guide_says_what_people_come_with() -> None:
    assert set(COMES_WITH) == set(Guide)


def test_the_index_is_written_by_its_generator() -> None:
    assert INDEX.read_text(encoding="utf-8") == index(groups(WORKER, AlarmSettings())), (
        "run python -m infra.alarms.page"
    )


@pytest.mark.parametrize("page", PAGES)
def test_a_page_tells_what_it_means_what_to_look_at_what_to_do_and_when_replay_is_safe(page: str) -> None:
    text = runbooks.text_of(page)
    places = [text.find(part) for part in PARTS]
    assert -1 not in places, [part for part, place in zip(PARTS, places, strict=True) if place < 0]
    assert places == sorted(places)
    assert runbooks.to_type(page), "no command stands in a line of its own"


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_is_one_of_the_command_line(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in runbooks.named(page):
        try:
            parser().parse_args(command.tried())
        except SystemExit:
            pytest.fail(f"tahan {command.text}: {capsys.readouterr().err}")


def test_a_command_that_is_not_there_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(runbooks.Command("dlq replay --grup <signature>").tried())
    assert "--grup" in capsys.readouterr().err


@cache
def settings_and_metrics() -> frozenset[str]:
    declared = {each.name for owner in (Worker, Job, Retry, Dependency) for each in fields(owner)}
    models = (AlarmSettings, Stage, Size)
    return frozenset({*KINDS, *declared, *(name for model in models for name in model.model_fields)})


@cache
def sources() -> str:
    folders = ("shared", "functions", "ops")
    return "".join(path.read_text(encoding="utf-8") for name in folders for path in (ROOT / name).rglob("*.py"))


def is_there(name: str) -> bool:
    """Whether it is a metric, a setting, an option of a declaration, or a word that the code logs or shows."""
    return name in settings_and_metrics() or f'"{name}"' in sources() or f"{name}=" in sources()


@pytest.mark.parametrize("page", PAGES)
def test_every_metric_setting_and_log_word_of_a_page_is_there(page: str) -> None:
    assert [name for name in NAME.findall(runbooks.text_of(page)) if not is_there(name)] == []


def test_a_name_that_is_not_there_is_found() -> None:
    assert not is_there("made_up_metric")


@pytest.mark.parametrize("page", PAGES)
def test_every_reason_for_a_wait_that_a_page_names_is_one(page: str) -> None:
    told = re.findall(r"`postponed` with (`[^|]+`)", runbooks.text_of(page))
    named = [name for cell in told for name in re.findall(r"`([a-z-]+)`", cell)]
    assert [name for name in named if name not in set(Because)] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_aws_is_one_with_its_options(page: str) -> None:
    session = botocore.session.get_session()
    for line in AWS.findall(runbooks.text_of(page)):
        _, service, operation, *words = shlex.split(line)
        if f"{service} {operation}" in CLI_ALONE:
            continue
        model = session.get_service_model(service)
        operations = {xform_name(name, "-"): name for name in model.operation_names}
        assert operation in operations, line
        shape = model.operation_model(operations[operation]).input_shape
        known = {xform_name(name, "-") for name in ({} if shape is None else shape.members)}
        asked = {word.removeprefix("--").removeprefix("no-") for word in words if word.startswith("--")}
        assert asked <= known, f"{line}: {asked - known}"
