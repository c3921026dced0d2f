"""Every gate, let look once at all stages that go to AWS and at the app of planted defects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from audit.gates import look
from audit.templates import stages, synthesise, write
from tests.audit.planted import planted

if TYPE_CHECKING:
    from audit.findings import Finding

PLANTED = "planted"


@dataclass(frozen=True, slots=True)
class Seen:
    """What all gates found, in the product's stages and among the planted defects."""

    product: tuple[Finding, ...]
    planted: frozenset[tuple[str, str, str]]
    stages: tuple[str, ...]


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Everything, by gate, rule and resource."""
    folder = tmp_path_factory.mktemp("audit")
    templates = [synthesise(stage, folder) for stage in stages()]
    defects = write(PLANTED, planted(), folder, retain=True)
    found, _ = look([*templates, defects])
    return Seen(
        product=tuple(each for each in found if each.template != PLANTED),
        planted=frozenset((each.gate, each.rule, each.resource) for each in found if each.template == PLANTED),
        stages=tuple(template.name for template in templates),
    )
