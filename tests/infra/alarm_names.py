"""An alarm's name in the template, without what the CDK puts around it."""

from __future__ import annotations

import re

from tests.infra.walk import plain


def name_of(logical: str) -> str:
    name = re.split(r"Alarms(?:Of(?:Stores|[A-Z][A-Za-z]*?(?=Table)))?", plain(logical))[-1]
    return "Table" if name.startswith("Table") else name
