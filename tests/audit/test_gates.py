"""Every gate bites: each planted defect is told by the rule that is for it. And what goes to AWS passes them all."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from audit.exceptions import judge, load
from audit.gates import GATES
from audit.rules import RULES
from tests.audit.planted import DEFECTS

if TYPE_CHECKING:
    from tests.audit.conftest import Seen
    from tests.audit.planted import Defect

pytestmark = pytest.mark.timeout(600)  # the tools are made on first use


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: f"{defect.gate}:{defect.what}")
def test_a_planted_defect_is_told_by_its_rule(seen: Seen, defect: Defect) -> None:
    assert (defect.gate, defect.rule, defect.name) in seen.planted


def test_there_are_defects_for_every_gate_and_for_every_rule_of_ours() -> None:
    assert {defect.gate for defect in DEFECTS} == set(GATES)
    assert {defect.rule.partition("[")[0] for defect in DEFECTS if defect.gate == "ours"} == set(RULES)


def test_every_stage_that_goes_to_aws_is_clean_but_for_exceptions_in_time(seen: Seen) -> None:
    judgement = judge(seen.product, load(), datetime.now(UTC).date())
    assert judgement.open == ()
    assert judgement.faults == ()


def test_the_front_door_is_looked_at_in_every_stage(seen: Seen) -> None:
    assert {each.template for each in seen.product if each.resource == "FrontDoorFunction"} == set(seen.stages)
