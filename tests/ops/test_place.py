"""Where commands go: the caller's account, or the local stack and then nothing else, whatever the environment says (LOC-01)."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from infra.names import stack_name
from infra.stage.settings import load_stage
from local.stack import note as kept
from local.stack.note import Note, noted, read_note
from local.stack.running import STACK
from ops.exits import CommandError
from ops.stack import place
from ops.stack.place import USUAL_STACK, go_local, go_to_aws

if TYPE_CHECKING:
    from pathlib import Path

NOTE = Note("tahan-local", {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "AWS_REGION": "r"}, "api", "issuer", "key")


def test_loc_01_a_local_command_leaves_nothing_of_the_callers_aws_settings(tmp_path: Path) -> None:
    environ = {"AWS_PROFILE": "work", "AWS_ACCESS_KEY_ID": "AKIA", "AWS_ENDPOINT_URL_SQS": "https://x", "PATH": "/bin"}
    file = tmp_path / "build" / "note.json"
    with noted(NOTE, file):
        assert go_local(environ, file) == "tahan-local"
    assert environ == {
        **NOTE.environ,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "PATH": "/bin",
    }


def test_a_note_is_ours_alone_to_read_and_goes_with_its_stack(tmp_path: Path) -> None:
    file = tmp_path / "note.json"
    with noted(NOTE, file):
        assert file.stat().st_mode & 0o777 == 0o600
        assert read_note(file) == NOTE
    assert read_note(file) is None
    assert list(tmp_path.iterdir()) == []


def test_a_stack_that_ends_leaves_the_note_of_a_later_one(tmp_path: Path) -> None:
    file = tmp_path / "note.json"
    later = Note("tahan-local", {}, "another", "issuer", "key")
    with noted(NOTE, file):
        file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), "api": "another", "environ": {}}))
    assert read_note(file) == later


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"stack": "s", "environ": 3}'])
def test_without_a_local_stack_it_is_said_how_to_get_one(text: str | None, tmp_path: Path) -> None:
    file, environ = tmp_path / "note.json", {"AWS_PROFILE": "work"}
    if text is not None:
        file.write_text(text)
    with pytest.raises(CommandError, match="make local"):
        go_local(environ, file)
    assert environ == {"AWS_PROFILE": "work"}


def test_the_note_is_looked_for_where_it_is_left_and_names_the_stack_that_is_deployed() -> None:
    assert place.NOTE == kept.NOTE
    assert stack_name(load_stage("local")) == STACK


def test_profile_region_and_stack_are_the_callers_or_as_named() -> None:
    environ = {"AWS_PROFILE": "work", "AWS_REGION": "eu-central-1"}
    assert go_to_aws(environ, None, None) == USUAL_STACK
    assert environ == {"AWS_PROFILE": "work", "AWS_REGION": "eu-central-1"}
    environ["TAHAN_STACK"] = "tahan-prod"
    assert go_to_aws(environ, "home", "eu-west-1") == "tahan-prod"
    assert (environ["AWS_PROFILE"], environ["AWS_REGION"]) == ("home", "eu-west-1")
    assert environ["AWS_DEFAULT_REGION"] == "eu-west-1"


def test_of_two_stacks_the_one_that_stays_leaves_its_note_again(tmp_path: Path) -> None:
    file = tmp_path / "note.json"
    later = replace(NOTE, api="http://127.0.0.1:2")
    with noted(NOTE, file) as again:
        with noted(later, file):
            again()
            assert read_note(file) == later  # the newest is meant while it is up
        assert read_note(file) is None
        again()
        assert read_note(file) == NOTE
    assert not file.exists()
