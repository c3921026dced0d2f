"""`python -m tests.api [ARGUMENTS OF SCHEMATHESIS]`: the long run."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from shared.settings import Settings
from tests.api.schemathesis_run import front_door_tables, run, serving_door
from tests.aws import CREDENTIALS, Database
from tests.moto_server import MotoServer


def main(arguments: list[str]) -> int:
    """Run it; the exit status is that of Schemathesis."""
    os.environ.update(CREDENTIALS)
    moto = MotoServer()
    moto.start()
    os.environ["AWS_ENDPOINT_URL"] = moto.endpoint
    try:
        database = Database.create(*front_door_tables())
        settings = Settings(database.jobs_table, database.outbox_table, tables=database.tables)
        with serving_door(settings) as api, tempfile.TemporaryDirectory() as folder:
            ran = run(api, Path(folder), *(arguments or ["--max-examples", "300"]))
    finally:
        moto.stop()
    sys.stderr.write(ran.stdout + ran.stderr)
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
