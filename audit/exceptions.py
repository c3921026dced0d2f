"""The file of exceptions, and what it leaves open of what the gates found.

An exception that excuses nothing any more is wrong, and so is one whose time is up: it excuses nothing from that day on.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import date, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from shared.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from audit.findings import Finding

FILE = Path(__file__).with_name("exceptions.toml")
LONGEST = timedelta(days=366)
Word = Annotated[str, Field(min_length=1)]


class Exemption(BaseModel):
    """Findings that are accepted for a time.

    Attributes:
        rules: ids, whole.
        resources: logical names without the CDK's letters; `*` stands for any part of one.
        reason: why the rule is wrong here, or what makes the risk bearable.
        expires: the first day on which it no longer holds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: tuple[Word, ...] = Field(min_length=1)
    resources: tuple[Word, ...] = Field(min_length=1)
    reason: str = Field(min_length=30)
    expires: date

    def excuses(self, finding: Finding) -> bool:
        """Whether it speaks of that finding."""
        return finding.rule in self.rules and any(fnmatchcase(finding.resource, name) for name in self.resources)


class Exemptions(BaseModel):
    """The whole file; `reviewed` is the day on which it was last gone through, and none reaches further than a year."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reviewed: date
    exception: tuple[Exemption, ...] = ()

    @model_validator(mode="after")
    def _end(self) -> Self:
        for each in self.exception:
            if each.expires > self.reviewed + LONGEST:
                message = (
                    f"{each.rules[0]} expires on {each.expires}, more than a year after the review of {self.reviewed}"
                )
                raise ValueError(message)
        return self


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is left of the findings.

    Attributes:
        open: findings that no valid exception excuses.
        excused: the others.
        faults: what is wrong about the exceptions themselves, a sentence each.
    """

    open: tuple[Finding, ...]
    excused: tuple[Finding, ...]
    faults: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left to do."""
        return not self.open and not self.faults


def load(path: Path = FILE) -> Exemptions:
    """The exceptions of a file.

    Raises:
        SettingsError: it is not of the shape that holds exceptions.
    """
    try:
        return Exemptions.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        message = f"{path.name} holds no exceptions as docs/security.md describes them; repair what this says.\n{error}"
        raise SettingsError(message) from error


def judge(findings: Iterable[Finding], exemptions: Exemptions, today: date) -> Judgement:
    """Tell what is open: by exceptions that are in time, and each of which is needed for every rule and name it gives."""
    found = tuple(sorted(findings))
    valid = [each for each in exemptions.exception if today < each.expires]
    excused = tuple(finding for finding in found if any(each.excuses(finding) for each in valid))
    expired = tuple(
        f"the exception from {', '.join(each.rules)} has expired on {each.expires}: repair the stack, or give a new reason."
        for each in exemptions.exception
        if today >= each.expires
    )
    unused = tuple(
        f"no finding of {rule} in {name!r} is left: take it out of audit/exceptions.toml."
        for each in exemptions.exception
        for rule in each.rules
        for name in each.resources
        if not any(finding.rule == rule and fnmatchcase(finding.resource, name) for finding in found)
    )
    return Judgement(tuple(f for f in found if f not in excused), excused, (*expired, *unused))
