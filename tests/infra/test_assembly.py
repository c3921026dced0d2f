"""The cloud assembly: made once for a content, whole or absent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra import assembly as assembling
from infra.assembly import KEPT, main, synthesise, template_path
from shared.errors import DeclarationError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONTENT = {
    "cdk.json": "{}",
    "pyproject.toml": "",
    "uv.lock": "",
    "infra/__init__.py": "",
    "shared/__init__.py": "",
    "functions/__init__.py": "",
    "infra/app.py": (
        "import os, pathlib\n"
        "out = pathlib.Path(os.environ['CDK_OUTDIR']); out.mkdir()\n"
        "(out / f\"tahan-{os.environ['STAGE']}.template.json\").write_text('{}')\n"
    ),
}


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A house whose app writes an empty template."""
    for name, text in CONTENT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(assembling, "ROOT", tmp_path)
    monkeypatch.setattr(assembling, "BUILD", tmp_path / "build")
    return tmp_path


@pytest.fixture
def said() -> list[str]:
    """What was shown as progress."""
    return []


@pytest.fixture
def made(said: list[str]) -> Callable[[str], Path]:
    """Synthesises and keeps what is said."""
    return lambda stage: synthesise(stage, progress=said.append)


@pytest.mark.usefixtures("house")
def test_the_second_call_takes_what_the_first_made(made: Callable[[str], Path], said: list[str]) -> None:
    first = made("dev")
    assert template_path(first, "dev").is_file()
    assert said[0] == "synthesising dev ..."
    said.clear()
    assert made("dev") == first
    assert said == [f"assembly of dev: {first.name}"]


@pytest.mark.usefixtures("house")
def test_stages_have_assemblies_of_their_own(made: Callable[[str], Path]) -> None:
    assert made("dev") != made("prod")


@pytest.mark.parametrize("changed", ["cdk.json", "uv.lock", "shared/__init__.py", "functions/new.py"])
def test_other_content_is_another_assembly(house: Path, made: Callable[[str], Path], changed: str) -> None:
    before = made("dev")
    (house / changed).write_text("# changed")
    assert made("dev") != before


def test_what_is_not_packaged_changes_nothing(house: Path, made: Callable[[str], Path]) -> None:
    before = made("dev")
    (house / "shared" / "__pycache__").mkdir()
    (house / "shared" / "__pycache__" / "x.pyc").write_bytes(b"")
    (house / "README.md").write_text("")
    assert made("dev") == before


def test_only_the_last_assemblies_are_kept(house: Path, made: Callable[[str], Path]) -> None:
    for number in range(KEPT + 2):
        (house / "uv.lock").write_text(str(number))
        newest = made("dev")
    kept = list((house / "build" / "assembly").glob("dev-*"))
    assert len(kept) == KEPT
    assert newest in kept


def test_code_that_changes_meanwhile_is_synthesised_again(
    house: Path, made: Callable[[str], Path], said: list[str]
) -> None:
    edit = f"pathlib.Path({str(house / 'uv.lock')!r}).write_text('changed')\n"
    (house / "infra" / "app.py").write_text(CONTENT["infra/app.py"] + edit)
    made("dev")
    assert said[:3] == ["synthesising dev ...", "the code changed meanwhile", "synthesising dev ..."]


def test_a_refusal_is_told_and_leaves_nothing_behind(house: Path, made: Callable[[str], Path]) -> None:
    (house / "infra" / "app.py").write_text(CONTENT["infra/app.py"] + "raise SystemExit('nat_gateways=0: set 1')")
    with pytest.raises(DeclarationError, match="nat_gateways=0: set 1"):
        made("dev")
    assert [p.name for p in (house / "build" / "assembly").iterdir()] == [".dev.lock"]


@pytest.mark.usefixtures("house")
def test_without_node_it_is_asked_for(made: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JSII_NODE", raising=False)
    with pytest.raises(SettingsError, match=r"^node is not found: install Node\.js 20 or later"):
        made("dev")


def test_the_program_prints_the_path_or_a_plain_sentence(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["prod"])
    assert capsys.readouterr().out.strip() == str(synthesise("prod", progress=list))
    (house / "infra" / "app.py").write_text(CONTENT["infra/app.py"] + "raise SystemExit('nat_gateways=0: set 1')")
    with pytest.raises(SystemExit) as ended:
        main([])
    assert str(ended.value) == "stage 'dev' cannot be synthesised; repair what it says.\nnat_gateways=0: set 1"
