"""The front door answers by its document and by nothing else: a short run of Schemathesis; `make api` is the long one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shared.settings import OwnerLimits, Settings
from tests.api.schemathesis_run import front_door_tables, run, served, serving_door
from tests.aws import Database

if TYPE_CHECKING:
    from pathlib import Path

    from local.stack.valkey import Valkey


@pytest.fixture
def settings(aws_endpoint: str, valkey: Valkey) -> Settings:
    """The front door's, for one busy owner."""
    database = Database.create(*front_door_tables())
    return Settings(
        jobs_table=database.jobs_table,
        outbox_table=database.outbox_table,
        tables=database.tables,
        cache_host=valkey.host,
        cache_port=str(valkey.port),
        cache_tls=False,
        cache_cluster=False,
        owner_limits=OwnerLimits(requests_per_second=5000, burst=10_000, unfinished=2000),
    )


def test_api9_nothing_is_answered_with_5xx_and_nothing_that_is_not_documented(
    settings: Settings, tmp_path: Path
) -> None:
    with serving_door(settings) as api:
        ran = run(api, tmp_path, "--max-examples", "10")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "10 selected / 10 total" in ran.stdout


@pytest.mark.parametrize(
    "answer",
    [
        {"statusCode": 418, "headers": {"content-type": "application/json"}, "body": "{}"},
        {"statusCode": 500, "headers": {"content-type": "application/problem+json"}, "body": "{}"},
        {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": "{}"},
    ],
    ids=["another status", "a fault", "another body"],
)
def test_a_front_door_that_answers_something_else_is_found(answer: dict[str, object], tmp_path: Path) -> None:
    with served(lambda *_: dict(answer)) as api:
        ran = run(api, tmp_path, "--phases", "fuzzing", "--max-examples", "1", "--include-path", "/operations")
    assert ran.returncode == 1, ran.stdout + ran.stderr
