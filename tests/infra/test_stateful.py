"""What prod holds outlives every deploy: nothing of it is removed or replaced, and the stack's end does not take it along."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from infra.assembly import synthesise, template_path
from ops.stack.stateful import FIXED, KEPT, harmed, held
from tests.infra.stateful import kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.infra.walk import Walk


@pytest.fixture(scope="module")
def prod() -> dict[str, Any]:
    template: dict[str, Any] = json.loads(template_path(synthesise("prod"), "prod").read_text(encoding="utf-8"))
    return template


def test_nothing_that_prod_holds_is_removed_or_replaced(prod: dict[str, Any]) -> None:
    assert list(harmed(kept(), held(prod))) == []


def test_all_that_prod_holds_is_written_down(prod: dict[str, Any]) -> None:
    assert held(prod).keys() == kept().keys(), "run python -m tests.infra.stateful"


def test_what_prod_holds_stays_when_the_stack_goes_or_a_resource_is_replaced(prod: dict[str, Any]) -> None:
    holding = {name: prod["Resources"][name] for name, each in held(prod).items() if "ApiGateway" not in each["type"]}
    for name, resource in holding.items():
        if resource["Type"] == "AWS::SNS::Topic":
            continue  # it holds nothing: alarms are told again
        assert {policy: resource.get(policy) for policy in KEPT} == dict.fromkeys(KEPT, "Retain"), name
        if resource["Type"] == "AWS::DynamoDB::Table":
            assert resource["Properties"]["DeletionProtectionEnabled"] is True


def test_everything_of_a_kind_that_holds_is_looked_at(walk: Walk) -> None:
    assert {each["type"] for each in held(walk.template).values()} == set(FIXED) - (
        set() if walk.of("AWS::ApiGatewayV2::Api") else {"AWS::ApiGatewayV2::Api"}
    )


def _remove(template: dict[str, Any], name: str) -> None:
    del template["Resources"][name]


def _retype(template: dict[str, Any], name: str) -> None:
    template["Resources"][name]["Type"] = "AWS::DynamoDB::GlobalTable"


def _rekey(template: dict[str, Any], name: str) -> None:
    template["Resources"][name]["Properties"]["KeySchema"][0]["AttributeName"] = "other"


def _rename(template: dict[str, Any], name: str) -> None:
    template["Resources"][name]["Properties"]["TableName"] = "mine"


def _let_go(template: dict[str, Any], name: str) -> None:
    template["Resources"][name]["DeletionPolicy"] = "Delete"


def _unprotect(template: dict[str, Any], name: str) -> None:
    template["Resources"][name]["Properties"]["DeletionProtectionEnabled"] = False


def _forget(template: dict[str, Any], name: str) -> None:
    template["Resources"][name]["Properties"]["TimeToLiveSpecification"]["AttributeName"] = "version"


def test_dead_letters_that_are_forgotten_sooner_are_harm_and_later_are_none(prod: dict[str, Any]) -> None:
    (dead,) = [
        name
        for name in prod["Resources"]
        if name.startswith("WorkerPaymentsQueuesDeadLetters") and "Policy" not in name
    ]
    for seconds, harms in ((60, 1), (1_209_600, 0)):
        changed = copy.deepcopy(prod)
        changed["Resources"][dead]["Properties"]["MessageRetentionPeriod"] = seconds
        assert len(list(harmed(held(prod), held(changed)))) == harms


@pytest.mark.parametrize(
    ("change", "deed", "why"),
    [
        (_remove, "removed", "no longer"),
        (_retype, "removed", "no longer"),
        (_rekey, "replaced", "KeySchema cannot change in place"),
        (_rename, "replaced", "TableName cannot change in place"),
        (_let_go, "less protected", "DeletionPolicy would be less"),
        (_unprotect, "less protected", "DeletionProtectionEnabled would be less"),
        (_forget, "less protected", "TimeToLiveSpecification would be less"),
    ],
)
def test_a_change_that_would_take_a_table_along_is_told(
    prod: dict[str, Any], change: Callable[[dict[str, Any], str], None], deed: str, why: str
) -> None:
    (jobs,) = [name for name in prod["Resources"] if name.startswith("FoundationTablesJobs")]
    changed = copy.deepcopy(prod)
    change(changed, jobs)
    (harm,) = harmed(held(prod), held(changed))
    assert (harm.name, harm.deed) == (jobs, deed)
    assert why in harm.why
