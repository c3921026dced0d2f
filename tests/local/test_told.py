"""What users are told: asked for until it has come to its end, and once more at last, so that what steps back is seen."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any, cast

import pytest

from infra.stage.settings import load_stage
from local.demo.client import Answer, Client
from local.demo.outbox_switch import OutboxSwitch
from local.demo.play import MINUTE
from local.demo.told import READS, Told
from local.processes.child import ProcessError


class Users:
    """Answers by path; every question is counted."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: Counter[str] = Counter()

    def get(self, user: str, path: str) -> Answer:
        self.asked[path] += 1
        return self.answers.get(f"{user} {path}", Answer(404))


def told_by(users: Users) -> Told:
    return Told(cast("Client", users))


def test_an_operation_is_asked_for_by_its_owner_until_it_is_final_and_at_last() -> None:
    users = Users()
    told = told_by(users)
    told.know("op_1", "ann")
    for status, asked in (("pending", 1), ("done", 2), ("pending", 2)):
        users.answers["ann /operations/op_1"] = Answer(200, {"status": status})
        told.look(is_last=False)
        assert users.asked["/operations/op_1"] == asked
    assert told.operations == {"op_1": "done"}

    told.look(is_last=True)

    assert told.operations == {"op_1": "pending"}


def test_an_operation_that_is_refused_is_told_by_the_status() -> None:
    users = Users()
    told = told_by(users)
    told.know("op_1", "ann")
    told.look(is_last=False)
    assert told.operations == {"op_1": "404"}


def test_a_read_is_looked_at_until_it_changes_and_at_last() -> None:
    read = READS[0]
    users, place = Users(), (READS[0].user, READS[0].path)
    told = told_by(users)
    for answer in (Answer(200, {}, '"1"'), Answer(200, {}, '"2"'), Answer(200, {}, '"3"')):
        users.answers[f"{read.user} {read.path}"] = answer
        told.look(is_last=False)
    assert (told.first_reads[place], told.reads[place]) == ('"1"', '"2"')

    told.look(is_last=True)

    assert told.reads[place] == '"3"'


@pytest.mark.parametrize(("answer", "seen"), [(Answer(404), None), (Answer(503), "503"), (Answer(0), "0")], ids=str)
def test_what_cannot_be_read_is_no_version(answer: Answer, seen: str | None) -> None:
    users = Users()
    users.answers[f"{READS[0].user} {READS[0].path}"] = answer
    told = told_by(users)
    told.look(is_last=False)
    assert told.first_reads[READS[0].user, READS[0].path] == seen


class Aws:
    """The clients, as far as the demo uses them here."""

    def __init__(self, *made: tuple[str, str, str]) -> None:
        self.made = made
        self.calls: list[dict[str, Any]] = []
        self.functions = self

    def resources(self, stack: str) -> list[dict[str, str]]:
        names = ("LogicalResourceId", "ResourceType", "PhysicalResourceId")
        return [dict(zip(names, each, strict=True)) for each in self.made]

    def update_event_source_mapping(self, **arguments: Any) -> None:
        self.calls.append(arguments)

    invoke = update_event_source_mapping


FUNCTION, MAPPING = "AWS::Lambda::Function", "AWS::Lambda::EventSourceMapping"


def test_the_relays_mapping_is_switched_and_the_sweeper_called_by_their_own_names() -> None:
    aws = Aws(
        ("WorkerPaymentsMapping12", MAPPING, "payments"),
        ("OutboxRelayFunction34", FUNCTION, "relay"),
        ("OutboxRelayMapping56", MAPPING, "mapping"),
        ("OutboxSweeperFunction78", FUNCTION, "sweeper"),
    )
    parts = OutboxSwitch.of(cast("Any", aws))
    parts.switch_relay(on=False)
    parts.sweep()
    assert aws.calls == [
        {"UUID": "mapping", "Enabled": False},
        {"FunctionName": "sweeper", "InvocationType": "Event"},
    ]


def test_the_sweeper_is_called_as_often_as_a_minute_at_the_local_stages_pace() -> None:
    assert timedelta(minutes=1) * load_stage("local").pace == MINUTE


def test_a_stack_without_them_is_told_by_name() -> None:
    with pytest.raises(ProcessError, match="no AWS::Lambda::EventSourceMapping called OutboxRelay"):
        OutboxSwitch.of(cast("Any", Aws(("OutboxRelayFunction34", FUNCTION, "relay"))))
