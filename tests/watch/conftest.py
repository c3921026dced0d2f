"""The template of the product's workers with a front door, and its alarms, trained on healthy days."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from functions.registry import WORKERS
from infra.app import hollow, template_of
from infra.stage.identity import Identity
from infra.stage.settings import Stage
from shared.worker import Worker
from tests.infra.declared import PAYING
from watch.alarms import Watch
from watch.healthy import healthy
from watch.usual import DAY

if TYPE_CHECKING:
    from watch.template import Template

STAGE = Stage(name="dev", identity=Identity(issuer="https://login.example.com", audience=("operations",)))
# The product has none of its own with reserved concurrency, which has an alarm, too.
RESERVED = Worker("reserved", (PAYING.jobs[1],), reserved_concurrency=20)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Synthesised in this process, with assets that hold next to nothing."""
    return template_of(STAGE, (*WORKERS, RESERVED), hollow(tmp_path_factory.getbasetemp() / "assets"))


@pytest.fixture(scope="session")
def watch(template: Template) -> Watch:
    """The alarms, and what is usual on three healthy days."""
    watch = Watch.of(template)
    banded = {stat.name for alarm in watch.alarms.values() if alarm.band for stat in alarm.stats.values()}
    watch.train(healthy(banded, 3 * DAY))
    return watch
