"""Changing a text in one's own editor."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from ops.commands.editor import in_editor
from ops.exits import CommandError, Exit

if TYPE_CHECKING:
    from pathlib import Path


def edited_by(command: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> str:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", command)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return in_editor('{"a": 1}')


def test_a_text_comes_back_as_the_editor_leaves_it_and_no_file_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert edited_by("sed -i s/1/2/", monkeypatch, tmp_path) == '{"a": 2}'
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command", ["", "no-such-editor", "'unbalanced", "false", "rm", "sh -c 'printf \"\\\\377\" > $0'"]
)
def test_an_editor_that_gives_no_text_ends_the_command_with_a_sentence_and_no_file_stays(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(CommandError) as ended:
        edited_by(command, monkeypatch, tmp_path)
    assert ended.value.status is Exit.REFUSED
    assert list(tmp_path.iterdir()) == []
