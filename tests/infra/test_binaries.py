"""CDK-05: a compiled file that the function could not load stops the build."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.packaging.binaries import MACHINES, check_binaries, compiled_files
from shared.errors import DeclarationError

if TYPE_CHECKING:
    from pathlib import Path


def elf(machine: int) -> bytes:
    return b"\x7fELF\x02\x01\x01" + bytes(9) + (3).to_bytes(2, "little") + machine.to_bytes(2, "little") + bytes(44)


def asset(root: Path, name: str, content: bytes) -> Path:
    (root / "lib").mkdir()
    (root / "lib" / name).write_bytes(content)
    (root / "lib" / "plain.py").write_text("")
    return root


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("core.cpython-313-aarch64-linux-gnu.so", "arm64"),
        ("core.cpython-313-x86_64-linux-gnu.so", "x86_64"),
        ("core.abi3.so", "arm64"),
        ("libssl.so.3", "x86_64"),
    ],
)
def test_cdk_05_what_is_built_for_the_function_passes(tmp_path: Path, name: str, machine: str) -> None:
    root = asset(tmp_path, name, elf(MACHINES[machine]))
    assert [path.name for path in compiled_files(root)] == [name]
    check_binaries(root, architecture=machine, python="3.13")


@pytest.mark.parametrize(
    ("name", "content", "built_for"),
    [
        ("core.cpython-313-x86_64-linux-gnu.so", elf(MACHINES["x86_64"]), "x86_64"),
        ("core.cpython-311-aarch64-linux-gnu.so", elf(MACHINES["arm64"]), "Python 3.11"),
        ("core.abi3.so", elf(MACHINES["x86_64"]), "x86_64"),
        ("libssl.so.3", elf(0x28), "machine 0x28"),
        ("core.cpython-313-darwin.so", b"\xcf\xfa\xed\xfe" + bytes(60), "another system than Linux"),
        ("core.cp313-win_amd64.pyd", b"MZ" + bytes(60), "another system than Linux"),
    ],
)
def test_cdk_05_what_is_built_for_another_machine_is_refused(
    tmp_path: Path, name: str, content: bytes, built_for: str
) -> None:
    with pytest.raises(DeclarationError) as refused:
        check_binaries(asset(tmp_path, name, content), architecture="arm64", python="3.13")
    expected = f"lib/{name} is built for {built_for}, the function runs on arm64 with Python 3.13"
    assert str(refused.value).startswith(expected)


def test_on_a_host_of_another_system_only_the_python_is_compared(tmp_path: Path) -> None:
    root = asset(tmp_path, "core.cpython-311-darwin.so", b"\xcf\xfa\xed\xfe" + bytes(60))
    check_binaries(root, architecture="arm64", python="3.11", linux=False)
    with pytest.raises(DeclarationError, match=r"Python 3\.11"):
        check_binaries(root, architecture="arm64", python="3.12", linux=False)
