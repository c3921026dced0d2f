"""Looks over the shoulder of a function under test: each AWS call that it makes must be granted to its role."""

from __future__ import annotations

import contextlib
import importlib.util
from functools import cache
from typing import TYPE_CHECKING, Any

from local.stack.standin import RECORDER
from shared.naming import camel
from tests.aws_calls import seeing
from tests.permissions.calls import needed
from tests.permissions.granted import BY_AWS, granted, why
from tests.permissions.kept import local_template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.settings import Settings


@cache
def _allowed() -> Any:
    return granted(local_template())


@cache
def _recorder() -> Any:
    spec = importlib.util.spec_from_file_location("recorder", RECORDER / "sitecustomize.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def acting(function: str, settings: Settings) -> Iterator[None]:
    """Let nothing pass, of whatever thread, that the role of this function does not grant; told when the block ends.

    What AWS does in a function's name (polling, say) is not looked at: here the tests do it.
    """
    names = logical_names(settings)
    refused: set[str] = set()

    def see(service: str, operation: str, parameters: dict[str, Any]) -> None:
        for action, resource in needed({"service": service, "operation": operation, **_recorder().bare(parameters)}):
            granted_to = _allowed()[function].get(action, ())
            if why(action, BY_AWS) is None and names.get(resource) not in granted_to:
                refused.add(f"{function} may not {action} {names.get(resource, resource)}")

    with seeing(see):
        yield
    assert not refused, "\n".join(sorted(refused))


def logical_names(settings: Settings) -> dict[str, str]:
    """What the resources of a stack under test are called in the template."""
    queues = {url.rpartition("/")[2]: f"Worker{camel(name)}QueuesSource" for name, url in settings.queues.items()}
    dead = {
        url.rpartition("/")[2]: f"Worker{camel(name)}QueuesDeadLetters"
        for name, url in settings.dead_letter_queues.items()
    }
    return {
        settings.jobs_table: "FoundationTablesJobs",
        settings.outbox_table: "FoundationTablesOutbox",
        **{real: f"FoundationTablesItems{camel(name)}" for name, real in settings.tables.items()},
        **{real: f"FoundationBuckets{camel(name)}" for name, real in settings.buckets.items()},
        **queues,
        **dead,
    }
