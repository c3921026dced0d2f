"""What goes wrong between us and AWS, in sentences that say what to do. Nothing of it is tried again here."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from ops.exits import CommandError, Exit
from shared.errors import NotSent, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGN_IN = (
    "sign in (`aws sso login`), or name credentials by --profile or the environment; for the stack on this machine say"
    " --local"
)
NO_CREDENTIALS = frozenset(
    {
        "CredentialRetrievalError",
        "NoCredentialsError",
        "PartialCredentialsError",
        "ProfileNotFound",
        "SSOTokenLoadError",
        "TokenRetrievalError",
        "UnauthorizedSSOTokenError",
    }
)
EXPIRED = ("ExpiredToken", "InvalidClientTokenId", "SignatureDoesNotMatch", "UnrecognizedClientException")
DENIED = "AccessDenied"


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Raise CommandError for whatever AWS or the way to it had to say."""
    try:
        yield
    except Refused as error:
        raise CommandError(str(error), Exit.REFUSED) from error
    except (NotSent, Unavailable) as error:
        raise CommandError(advice(str(error))) from error
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        raise CommandError(advice(f"AWS refuses {error.operation_name} ({code}).")) from error
    except BotoCoreError as error:
        name = type(error).__name__
        if name in NO_CREDENTIALS:
            message = f"There are no AWS credentials that can be used ({name}): {SIGN_IN}."
        elif name == "NoRegionError":
            message = "No AWS region is named: give --region, or set AWS_REGION."
        else:
            message = advice(f"AWS gave no answer ({name}).")
        raise CommandError(message) from error


def advice(what: str) -> str:
    """What happened, and what may help."""
    if DENIED in what:
        return f"{what} Your credentials lack that permission: docs/reference/cli.md lists what each command needs."
    if any(code in what for code in EXPIRED):
        return f"{what} The credentials are no longer good: {SIGN_IN}."
    if "no answer" in what:
        return f"{what} Look at the network and the region; a local stack must still be running."
    return what
