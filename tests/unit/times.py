"""Times that a declared job may have."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

TIMES: dict[str, Any] = {"timeout": timedelta(seconds=30), "max_latency": timedelta(minutes=2)}
