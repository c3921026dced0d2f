"""What infra writes into the environment is what a function reads."""

from __future__ import annotations

import pytest

from shared.errors import SettingsError
from shared.settings import OwnerLimits, Settings

SETTINGS = Settings(
    jobs_table="jobs",
    outbox_table="outbox",
    tables={"orders": "orders-1", "order-lines": "lines-1"},
    queues={"payments": "https://q"},
    dead_letter_queues={"payments": "https://d"},
    endpoints={"payment-provider": "https://p"},
    cache_host="cache",
    cache_port="6380",
    cache_tls=False,
    cache_cluster=False,
    cache_user="tahan-user",
    cache_name="tahan-cache",
    pace=0.1,
    owner_limits=OwnerLimits(requests_per_second=20, burst=40, unfinished=1000),
)


def test_the_environment_reads_back_as_it_was_written() -> None:
    assert Settings.from_environ(SETTINGS.to_environ()) == SETTINGS


@pytest.mark.parametrize(
    ("name", "value"),
    [("JOBS_TABLE", None), ("PACE", "fast"), ("CACHE_TLS", "yes"), ("OWNER_LIMITS", "20,40")],
)
def test_what_is_missing_or_cannot_be_read_is_named(name: str, value: str | None) -> None:
    environ = {key: text for key, text in SETTINGS.to_environ().items() if key != f"TAHAN_{name}"}
    if value is not None:
        environ[f"TAHAN_{name}"] = value
    with pytest.raises(SettingsError, match=name):
        Settings.from_environ(environ)
