"""Each guide of `docs/runbooks`, followed with its own commands until its trouble is over; `make drill` shows them as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.alarms.guides import Guide
from tests.drills.guides import TROUBLES, Place

if TYPE_CHECKING:
    from pathlib import Path

    from local.stack.valkey import Valkey


def test_every_guide_is_drilled() -> None:
    assert set(TROUBLES) == set(Guide)


@pytest.mark.parametrize("guide", Guide)
def test_a_guide_leads_out_of_its_trouble_by_the_commands_of_its_page(
    guide: Guide, aws_endpoint: str, valkey: Valkey, tmp_path: Path
) -> None:
    assert TROUBLES[guide](Place(valkey, tmp_path))
