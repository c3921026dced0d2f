"""moto's server for loads: `python -m benchmarks.capacity.local_moto PORT`.

moto copies whole tables before each transaction, to have them back if it fails: its time would grow with the load. None of
these fails, so that nothing is copied here.
"""

from __future__ import annotations

import copy
import sys
from unittest import mock

from moto.dynamodb.models.table import Table

from tests import moto_server


class NoCopies:
    """The module `copy`, as moto's transactions see it: a table is its own copy."""

    @staticmethod
    def deepcopy(value: object) -> object:
        """Copy anything but a table."""
        return value if isinstance(value, Table) else copy.deepcopy(value)


if __name__ == "__main__":
    with mock.patch.object(moto_server, "_OneCopy", NoCopies):
        moto_server.MotoServer(int(sys.argv[1])).serve()
