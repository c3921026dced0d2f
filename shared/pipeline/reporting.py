"""What is told of a delivery that is over: its log line, and what it adds to the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.outcome import Because, Completed, Outcome, Postponed, Retried, told
from shared.telemetry import NO_JOB_TYPE

if TYPE_CHECKING:
    from datetime import datetime

    from shared.clock import Clock
    from shared.delivery import Delivery
    from shared.pipeline.preparation import Prepared
    from shared.pipeline.run import Run
    from shared.telemetry import Telemetry

STUCK_AFTER = 2  # times the objective
# Postponements that an alarm watches; each is counted under its own name besides.
WATCHED = frozenset({Because.CONTENDED, Because.LEASE_LOST, Because.CLAIM_LOST, Because.INVALIDATION_FAILED})


@dataclass(frozen=True, slots=True)
class Reporting:
    """Tells of one worker's deliveries."""

    worker: str
    clock: Clock
    telemetry: Telemetry

    def report(self, delivery: Delivery, prepared: Prepared | None, outcome: Outcome, begun: datetime) -> None:
        """One log line and the metrics of one delivery."""
        now = self.clock.now()
        run = None if prepared is None else prepared.run
        name = NO_JOB_TYPE if run is None else run.job.name
        result, more = told(outcome)
        self.telemetry.count(result, name)
        if isinstance(outcome, Postponed) and outcome.because in WATCHED:
            self.telemetry.count(outcome.because.replace("-", "_"), name)
        self.telemetry.took("duration", name, now - begun)
        if delivery.sent_at is not None and delivery.receive_count == 1:
            self.telemetry.took("wait", name, begun - delivery.sent_at)
        if run is not None and run.due_at is not None and isinstance(outcome, Completed):
            self.telemetry.took("latency", name, now - run.due_at)
        if prepared is not None:
            self._tell_locks(prepared, name)
        if run is not None and isinstance(outcome, Retried | Postponed) and _is_stuck(run, now):
            self.telemetry.count("stuck", name)
        names: dict[str, object] = (
            {} if run is None else {**run.names, "record": run.record, "resources": run.resources}
        )
        names.pop("idempotency_key", None)  # a client's secret, perhaps; the record's id is its hash
        self.telemetry.job(
            result=result,
            worker=self.worker,
            message_id=delivery.message_id,
            receive_count=delivery.receive_count,
            duration_ms=int((now - begun).total_seconds() * 1000),
            xray=delivery.trace,
            **names,
            **more,
        )

    def _tell_locks(self, prepared: Prepared, name: str) -> None:
        """Tell how long the locks were held that it had; they are taken for a whole batch, before a delivery's turn."""
        if prepared.locks.leases:
            self.telemetry.took("lock_held", name, max(lease.age() for lease in prepared.locks.leases))


def _is_stuck(run: Run, now: datetime) -> bool:
    """Whether its message waits for longer than twice the objective since SQS took it, or since it may run.

    Not since it was asked for: a replayed dead letter was asked for days ago, and a producer's clock may be behind.
    """
    sent_at, run_at = run.delivery.sent_at, run.message.run_at
    due = max((moment for moment in (sent_at, run_at) if moment is not None), default=now)
    return now - due > STUCK_AFTER * run.job.max_latency
