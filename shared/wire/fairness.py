"""Fairness between tenants: on a standard queue SQS hands out first what is of tenants with little in flight, told apart by MessageGroupId.

A tenant decides nothing else: who may see or ask for a job is its owner's affair.
"""

from __future__ import annotations

import hashlib

from shared.errors import Refused
from shared.limits import check_group

LONGEST_TENANT = 1024


def group_of(tenant: str) -> str:
    """The MessageGroupId of a tenant: its name where SQS takes it, else a hash of it."""
    try:
        check_group(tenant)
    except Refused:
        return hashlib.sha256(tenant.encode(errors="surrogatepass")).hexdigest()
    return tenant


def standard_group(group: str | None, tenant: str | None) -> str | None:
    """The MessageGroupId on a standard queue: the group that was asked for, or else that of the tenant."""
    if group is not None or tenant is None:
        return group
    return group_of(tenant)
