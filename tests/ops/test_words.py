"""The words that commands have in common."""

from __future__ import annotations

import pytest

from ops.exits import Exit
from tests.ops.desk import Desk


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("operation list --owner me --limit 0", "argument --limit: 0: give 1 to 100."),
        ("operation list --owner me --limit 101", "101: give 1 to 100."),
        ("job list --limit 0", "0: give 1 to 100."),
        ("job list --limit many", "many: give 1 to 100."),
        ("locks list --limit 1001", "1001: give 1 to 1000."),
        ("dlq list --limit 0", "0: give 1 to 120000."),
        ("dlq groups --limit -1", "-1: give 1 to 120000."),
        ("console --port 70000", "argument --port: 70000: give 0 to 65535."),
    ],
)
def test_a_number_out_of_bounds_is_refused_with_the_bounds(
    words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        Desk().run(*words.split())
    assert ended.value.code == Exit.REFUSED
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    ["pause payments", "drain payments", "resume payments", "job release op_1", "job cancel op_1", "dlq discard --all"],
)
def test_a_change_demands_its_reason(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        Desk().run(*words.split())
    assert ended.value.code == Exit.REFUSED
    assert "--why" in capsys.readouterr().err
