"""What an asset is built for, and the refusal of one that could not be loaded there."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.packaging.binaries import check_binaries

if TYPE_CHECKING:
    from pathlib import Path

    from infra.stage.settings import Stage

PLATFORMS = {"arm64": "aarch64-manylinux_2_28", "x86_64": "x86_64-manylinux_2_28"}


@dataclass(frozen=True, slots=True)
class Target:
    """A processor and a Python; `on_host` is this machine and the Python that runs this."""

    architecture: str
    python: str
    on_host: bool = False

    @classmethod
    def of(cls, stage: Stage) -> Target:
        """The target of a stage's functions."""
        return cls(stage.processor, stage.python_version, stage.on_host)

    @property
    def platform(self) -> tuple[str, ...]:
        """What tells uv the platform; nothing for the one it runs on."""
        return () if self.on_host else ("--python-platform", PLATFORMS[self.architecture])

    def check(self, directory: Path) -> None:
        """Refuse an asset with a compiled file that cannot be loaded here.

        Raises:
            DeclarationError: naming the file.
        """
        check_binaries(
            directory,
            architecture=self.architecture,
            python=self.python,
            linux=not self.on_host or sys.platform == "linux",
        )
