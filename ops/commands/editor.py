"""Lets people change a text in their own editor; a file that only they can read holds it meanwhile."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from ops.exits import CommandError, Exit


def in_editor(text: str) -> str:
    """The text as people have left it.

    Raises:
        CommandError: there is no editor, or it ended badly.
    """
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command:
        message = "There is no $EDITOR: give the payload by --payload, --payload-file or -."
        raise CommandError(message, Exit.REFUSED)
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8", delete=False) as file:
        file.write(text)
    try:
        ended = subprocess.run([*shlex.split(command), file.name], check=False)  # noqa: S603 - the caller's own editor
        if ended.returncode:
            message = f"The editor ended with {ended.returncode}: nothing is changed."
            raise CommandError(message, Exit.REFUSED)
        return Path(file.name).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        message = f"The editor {command!r} gave no text ({type(error).__name__}): nothing is changed."
        raise CommandError(message, Exit.REFUSED) from error
    finally:
        Path(file.name).unlink(missing_ok=True)
