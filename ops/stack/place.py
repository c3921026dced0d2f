"""Where commands go: the caller's AWS account, or the stack on this machine that has left a note.

It sets the environment of this process, which every AWS client of the project reads: one way for all of them.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from ops import ROOT
from ops.exits import CommandError

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from pathlib import Path

NOTE = ROOT / "build" / "local-stack.json"
STACK_VARIABLE = "TAHAN_STACK"
USUAL_STACK = "tahan-dev"
AWS = "AWS_"


def go_to_aws(environ: MutableMapping[str, str], profile: str | None, region: str | None) -> str:
    """Use the caller's credentials; give the name of the stack that is meant if none is named."""
    if profile is not None:
        environ["AWS_PROFILE"] = profile
    if region is not None:
        environ["AWS_REGION"] = environ["AWS_DEFAULT_REGION"] = region
    return environ.get(STACK_VARIABLE, USUAL_STACK)


def go_local(environ: MutableMapping[str, str], file: Path = NOTE) -> str:
    """Use the stack on this machine and nothing of the caller's AWS settings; give its name.

    Raises:
        CommandError: none has left a note, or the note cannot be read.
    """
    try:
        note = json.loads(file.read_text(encoding="utf-8"))
        stack, given = str(note["stack"]), {str(name): str(value) for name, value in note["environ"].items()}
    except FileNotFoundError as error:
        message = "No local stack is up: start one with `make local`, and leave it running."
        raise CommandError(message) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"The note of the local stack cannot be read ({file}): start it anew with `make local`."
        raise CommandError(message) from error
    for name in [name for name in environ if name.startswith(AWS)]:
        del environ[name]
    environ.update(given, AWS_CONFIG_FILE=os.devnull, AWS_SHARED_CREDENTIALS_FILE=os.devnull)
    return stack
