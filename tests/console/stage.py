"""A console over moto, with a worker that runs beside it: real jobs, real dead letters, the lookout over the real Valkey."""

from __future__ import annotations

import contextlib
import io
import json
import threading
import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rich.console import Console as Terminal

from functions import lookout
from functions.registry import WORKERS
from infra.alarms.alarm import Alarm
from infra.alarms.queues import Deployed as Names
from infra.alarms.worker import worker_alarms
from infra.stage.alarm_settings import AlarmSettings
from ops import ROOT
from ops.cli import connected
from ops.console.house import House
from ops.console.server import Served
from ops.stack.deployed import Deployed
from shared.backends.aws import client
from shared.job_record import SYSTEM, record_id
from shared.telemetry import NAMESPACE
from tests.aws import create_queue
from tests.operated import Letters, Looking, outputs_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.stack import Stack

STACK = "tahan-dev"


@dataclass
class Stage:
    """The stack of a test as a deployed one, and the console beside it."""

    stack: Stack
    folder: Path
    works: bool = True
    _over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        sqs = client("sqs")
        queues = {self.stack.worker.name: self.stack.settings.queues[self.stack.worker.name]}
        dead = {self.stack.worker.name: self.stack.settings.dead_letter_queues[self.stack.worker.name]}
        for worker in WORKERS:
            if worker.name not in queues:
                queues[worker.name], dead[worker.name] = create_queue(sqs)
        self.queues = queues
        group = f"audit-{uuid.uuid4().hex[:8]}"
        client("logs").create_log_group(logGroupName=group)
        outputs = outputs_of(self.stack.settings.jobs_table, group, queues, dead)
        outputs["Api"] = "https://api.example"
        self.deployed = Deployed(STACK, outputs)
        gates = {each.name: each.gate for worker in WORKERS for each in worker.dependencies if each.gate is not None}
        written = {name: text for name, gate in gates.items() if (text := gate.written) is not None}
        self.lookout = lookout.connect(replace(self.stack.settings, gates=written))
        nowhere = Terminal(file=io.StringIO())
        tools = replace(
            connected(),
            out=nowhere,
            err=nowhere,
            deployed=lambda _: self.deployed,
            running=lambda stack: Looking(stack, receives=self._receives, lookout=self.lookout.answer, concurrency=20),
            dead_letters=lambda source, dead: Letters(client("sqs"), dead, source, wait=0),
        )
        self.house = House(tools, STACK, self.folder / "archives", ROOT / "docs")
        self.served = Served(self.house, 0)

    @property
    def address(self) -> str:
        """The address that lets people in."""
        return self.served.guard.address

    @property
    def here(self) -> str:
        """The address of the first page, for whoever has the cookie."""
        return self.address.partition("/?")[0]

    @contextlib.contextmanager
    def running(self) -> Iterator[Stage]:
        """The console answers and the worker works while the block lasts."""
        threads = [self.served.beside(), threading.Thread(target=self._work, daemon=True)]
        threads[1].start()
        try:
            yield self
        finally:
            self._over.set()
            self.served.stop()
            for thread in threads:
                thread.join()

    def capture(self, order: str) -> str:
        """Ask for a capture of this order; give its operation id."""
        key = f"{order}/capture"
        body = {
            "job_type": "capture-payment",
            "idempotency_key": key,
            "payload": {"order_id": order, "payment_intent_id": f"pi_ok_{order}"},
        }
        self.stack.send(json.dumps(body))
        return f"op_{record_id(SYSTEM, 'capture-payment', key)}"

    def seed(self, order: str) -> None:
        """Let there be the order that a capture is about."""
        self.stack.seed(order_id=order, payment_intent_id=f"pi_ok_{order}")

    def measure(self, **numbers: float) -> None:
        """Tell CloudWatch what the worker has done in the last minutes: no function's log is read here."""
        own = [{"Name": "service", "Value": "payments"}, {"Name": "job_type", "Value": "capture-payment"}]
        data = [
            {
                "MetricName": name,
                "Dimensions": own,
                "Value": value,
                "Timestamp": datetime.now(UTC) - timedelta(minutes=2),
            }
            for name, value in numbers.items()
        ]
        client("cloudwatch").put_metric_data(Namespace=NAMESPACE, MetricData=data)

    def alarms(self, *ringing: str) -> None:
        """Make the alarms of the worker as infra declares them; those of these names ring."""
        cloudwatch = client("cloudwatch")
        for alarm in worker_alarms(self.stack.worker, Names("source", "dead", "function"), AlarmSettings()):
            if isinstance(alarm, Alarm):
                name = f"{STACK}-WorkerPayments{alarm.name}"
                cloudwatch.put_metric_alarm(
                    AlarmName=name,
                    AlarmDescription=alarm.description,
                    Namespace=NAMESPACE,
                    MetricName="any",
                    Period=60,
                    EvaluationPeriods=1,
                    Threshold=1.0,
                    Statistic="Sum",
                    ComparisonOperator="GreaterThanThreshold",
                )
                state = "ALARM" if alarm.name in ringing else "OK"
                cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="as the stage says")

    def _receives(self, worker: str) -> bool:
        return self.works or worker != self.stack.worker.name

    def _work(self) -> None:
        while not self._over.is_set():
            if not self.works or not self.stack.mapping.poll():
                self._over.wait(0.1)
            self.stack.relay_new()
