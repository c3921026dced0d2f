"""What an exception excuses, and when it ends."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from audit.exceptions import Exemption, Exemptions, judge, load
from audit.findings import Finding, plain
from shared.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

TODAY = date(2027, 3, 1)
LATER = date(2027, 9, 1)
REASON = "a reason that somebody can check, in a sentence"


def finding(rule: str = "CKV_AWS_1", resource: str = "WorkerPaymentsFunction") -> Finding:
    return Finding("checkov", rule, resource, "prod", "is wrong")


def exemptions(*rules: str, names: tuple[str, ...] = ("Worker*Function",), expires: date = LATER) -> Exemptions:
    one = Exemption(rules=rules, resources=names, reason=REASON, expires=expires)
    return Exemptions(reviewed=TODAY, exception=(one,))


def test_without_an_exception_a_finding_is_open() -> None:
    judgement = judge([finding()], Exemptions(reviewed=TODAY), TODAY)
    assert judgement.open == (finding(),)
    assert not judgement.is_clean


def test_an_exception_excuses_its_rule_in_its_resources() -> None:
    judgement = judge([finding()], exemptions("CKV_AWS_1"), TODAY)
    assert judgement.excused == (finding(),)
    assert judgement.is_clean


@pytest.mark.parametrize(
    "other", [finding(rule="CKV_AWS_2"), finding(resource="FrontDoorFunction"), finding(rule="CKV_AWS_1[a thing]")]
)
def test_an_exception_excuses_no_other_rule_and_no_other_resource(other: Finding) -> None:
    judgement = judge([finding(), other], exemptions("CKV_AWS_1"), TODAY)
    assert judgement.open == (other,)


@pytest.mark.parametrize(("expires", "holds"), [(date(2027, 3, 2), True), (TODAY, False), (date(2027, 2, 1), False)])
def test_an_exception_holds_until_the_day_on_which_it_expires(expires: date, *, holds: bool) -> None:
    judgement = judge([finding()], exemptions("CKV_AWS_1", expires=expires), TODAY)
    assert judgement.is_clean is holds
    assert judgement.open == (() if holds else (finding(),))


def test_an_expired_exception_is_told_also_when_nothing_needs_it() -> None:
    (expired, unused) = judge([], exemptions("CKV_AWS_1", expires=TODAY), TODAY).faults
    assert "CKV_AWS_1 has expired on 2027-03-01: repair the stack, or give a new reason" in expired
    assert "no finding of CKV_AWS_1 in 'Worker*Function' is left" in unused


@pytest.mark.parametrize(
    ("given", "unused"),
    [
        (exemptions("CKV_AWS_1", "CKV_AWS_2"), "no finding of CKV_AWS_2 in 'Worker*Function' is left"),
        (exemptions("CKV_AWS_1", names=("Worker*", "Door*")), "no finding of CKV_AWS_1 in 'Door*' is left"),
    ],
)
def test_every_rule_and_every_name_of_an_exception_must_be_needed(given: Exemptions, unused: str) -> None:
    judgement = judge([finding()], given, TODAY)
    assert judgement.open == ()
    assert [fault.startswith(unused) for fault in judgement.faults] == [True]
    assert not judgement.is_clean


def test_names_are_compared_without_the_letters_that_the_cdk_puts_behind() -> None:
    assert plain("FoundationKeyCE5FC256") == "FoundationKey"
    assert (
        plain("IAM5[Resource::<BucketsDeposits0CC83853.Arn>/texts/*]")
        == "IAM5[Resource::<BucketsDeposits.Arn>/texts/*]"
    )
    assert plain("CKV_AWS_117") == "CKV_AWS_117"


GOOD = f"""
reviewed = 2027-03-01
[[exception]]
rules = ["CKV_AWS_1"]
resources = ["Worker*"]
reason = "{REASON}"
expires = 2027-09-01
"""


def test_a_file_of_exceptions_is_read(tmp_path: Path) -> None:
    path = tmp_path / "exceptions.toml"
    path.write_text(GOOD)
    assert load(path) == exemptions("CKV_AWS_1", names=("Worker*",))


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ("2027-09-01", "2028-03-03", "expires on 2028-03-03, more than a year after the review of 2027-03-01"),
        ("expires = 2027-09-01", "", "expires"),
        (REASON, "later", "at least 30 characters"),
        ('["Worker*"]', "[]", "resources"),
        ("reason", "why", "Extra inputs are not permitted"),
        ("[[", "[", "repair what this says"),
        ("]]", "]", "repair what this says"),
    ],
)
def test_an_exception_without_all_of_its_parts_is_refused(tmp_path: Path, was: str, becomes: str, told: str) -> None:
    path = tmp_path / "exceptions.toml"
    path.write_text(GOOD.replace(was, becomes))
    with pytest.raises(SettingsError, match=told):
        load(path)
