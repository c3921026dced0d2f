"""What is done for the deliveries of a batch before the turn of each: parsing, heartbeats, and the locks in one exchange.

A heartbeat begins with the receipt and not with the turn: a message that waits for a thread is lost with its process, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.errors import Malformed, NewerVersion
from shared.failpoints import Failpoint, failpoint
from shared.pipeline.heartbeat import Heartbeat
from shared.pipeline.run import read_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from shared.clock import Surroundings
    from shared.delivery import Delivery
    from shared.job import JobTypes
    from shared.pipeline.heartbeat import Hides, Prolongs
    from shared.pipeline.keeper import Keeper
    from shared.pipeline.locking import Locking, Locks
    from shared.pipeline.run import Run
    from shared.telemetry import Telemetry
    from shared.wire.deposits import Deposits


@dataclass(frozen=True, slots=True)
class Prepared:
    """A delivery that can be run: what it asks for, the locks it has so far, its heartbeat if it has one."""

    run: Run
    locks: Locks
    heartbeat: Heartbeat | None


@dataclass(frozen=True, slots=True)
class Preparation:
    """Prepares the deliveries of one worker, and lets go of what was prepared."""

    job_types: JobTypes
    records: Prolongs
    queue: Hides
    keeper: Keeper
    locking: Locking
    here: Surroundings
    telemetry: Telemetry
    deposits: Deposits | None = None

    def together(self, batch: Sequence[Delivery], at_once: AbstractSet[str], until: datetime) -> dict[str, Prepared]:
        """Prepare a batch, with the locks of those whose turn comes `at_once`; by message id.

        What cannot be parsed is left out: its own turn tells why.
        """
        found: dict[str, Prepared] = {}
        for delivery in batch:
            try:
                found[delivery.message_id] = self.alone(delivery, until)
            except (Malformed, NewerVersion):
                continue
            except Exception as error:  # noqa: BLE001 - its own turn finds it again, and spares the others
                self.telemetry.warn("not_prepared", message_id=delivery.message_id, error=type(error).__name__)
        if not self.here.stopping.is_set():
            try:
                now = self.here.clock.now()
                ready = [each for name, each in found.items() if name in at_once and not each.run.message.wait(now)]
                self.locking.take_together([prepared.locks for prepared in ready])
            except Exception as error:  # noqa: BLE001 - each asks anew in its turn, by the same token
                self.telemetry.warn("not_prepared", message_id=None, error=type(error).__name__)
        return found

    def alone(self, delivery: Delivery, until: datetime) -> Prepared:
        """Prepare one delivery, without its locks.

        Raises:
            Malformed: it can never run.
            NewerVersion: a later deploy will know its payload.
            Unavailable: its payload is deposited, and the store did not answer.
        """
        run = read_run(delivery, self.job_types, until, self.deposits)
        locks = self.locking.locks_of(run)
        heartbeat = None
        if run.job.heartbeat is not None:
            beat = run.job.heartbeat
            heartbeat = Heartbeat(delivery, beat, self.records, self.queue, self.here.clock, self.telemetry)
            self.keeper.keep(heartbeat)
        return Prepared(run, locks, heartbeat)

    def let_go(self, prepared: Prepared) -> None:
        """Stop the heartbeat and give back the leases that are still held, before the outcome is settled. Never raises."""
        if prepared.heartbeat is not None:
            self.keeper.forget(prepared.heartbeat)
            prepared.heartbeat.stop()
        try:
            self.locking.leases.give_back(prepared.locks.leases)
        except Exception as error:  # noqa: BLE001 - the outcome is to be settled; the leases end by themselves
            self.telemetry.warn(
                "leases_not_returned", message_id=prepared.run.delivery.message_id, error=type(error).__name__
            )
        failpoint(Failpoint.LEASES_RETURNED)
