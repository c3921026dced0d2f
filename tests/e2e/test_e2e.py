"""The life of a stack in its short form; `make e2e` plays the demo's situations in it, too."""

from __future__ import annotations

import pytest

from local.display import Display
from tests.e2e.__main__ import live


@pytest.mark.timeout(900)
def test_a_stack_is_deployed_smoked_updated_under_load_rolled_back_and_destroyed() -> None:
    done = [step for step, _ in live(Display(to_stderr=True), short=True)]
    assert done == ["deployed", "smoke", "updated under load, rolled back", "destroyed"]
