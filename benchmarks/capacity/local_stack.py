"""The local stack that loads run on: real consumers in processes of their own, moto's server, a real Valkey, a slow provider.

Jobs wait for the provider and hardly for a processor: what bounds them is the concurrency, as it is on AWS.
"""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import get_context
from typing import TYPE_CHECKING

from benchmarks.capacity.local_consumer import CONSUMERS, consume
from local.outside.payment_ledger import Ledger
from local.outside.payment_provider import Provider
from local.outside.server import Step
from local.processes.child import Program
from local.processes.children import Children
from local.processes.ports import free_port, listens
from local.stack.valkey import Valkey
from tests.aws import CREDENTIALS
from tests.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shared.settings import Settings

WAIT = timedelta(seconds=1)  # of the provider before it answers
GRACE = 10.0  # seconds for a consumer to end


class SlowLedger(Ledger):
    """Charges plainly, after a wait."""

    def next_step(self, intent: str) -> Step:
        """Count the request, and let it wait."""
        super().next_step(intent)
        return Step(delay=WAIT)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What loads share: a folder, Valkey, and the provider. AWS's address is in the environment."""

    folder: Path
    valkey: Valkey
    provider: Provider


@contextlib.contextmanager
def surroundings(folder: Path) -> Iterator[Surroundings]:
    """Moto and Valkey in processes of their own, and the provider in this one."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(CREDENTIALS)
    port = free_port()
    with Children() as children, serving(Provider(0, quiet=True)) as provider:
        provider.ledger = SlowLedger()
        command = (sys.executable, "-m", "benchmarks.capacity.local_moto", str(port))
        moto = children.start(Program("moto", command, dict(os.environ), folder / "moto.log"))
        moto.wait_until(lambda: listens(port), timedelta(seconds=60))
        os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
        valkey = Valkey(children, folder / "valkey")
        valkey.start()
        yield Surroundings(folder, valkey, provider)


@contextlib.contextmanager
def consuming(settings: Settings, folder: Path) -> Iterator[list[Path]]:
    """The consumers, while the block lasts; gives the files of their notes."""
    context = get_context("spawn")
    over = context.Event()
    notes = [folder / f"consumer-{number}.jsonl" for number in range(CONSUMERS)]
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    processes = [context.Process(target=consume, args=(settings, endpoint, file, over)) for file in notes]
    for process in processes:
        process.start()
    try:
        yield notes
    finally:
        over.set()
        for process in processes:
            process.join(GRACE)
            process.kill()
