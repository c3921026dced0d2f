"""What runs in a stack, looked at by the caller's AWS credentials: SQS, Lambda, CloudWatch, and the stack's own lookout."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ops.stack.running import COUNTED, Depth, Receiving, Ringing
from shared.backends.aws import client, translated
from shared.errors import Unavailable
from shared.metrics import Writer
from shared.telemetry import JOB_TYPE, NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from ops.stack.deployed import Deployed
    from shared.worker import Worker

AT_THE_EDGES = {
    "accepted": Writer.FRONT_DOOR,
    "refused": Writer.FRONT_DOOR,
    "relayed": Writer.RELAY,
    "swept": Writer.SWEEPER,
    "parked": Writer.SWEEPER,
}
WINDOW = timedelta(minutes=5)
LATE = timedelta(minutes=3)  # by which metrics may come
LIVE = "live"  # the alias by which functions are called
LOOKOUT_SECONDS = 30.0
PATIENT = "patient lambda"


@dataclass(frozen=True, slots=True)
class AwsRunning:
    """Looks by the caller's credentials."""

    stack: Deployed
    _clients: dict[str, Any] = field(default_factory=dict, repr=False)

    def _client(self, service: str) -> Any:  # noqa: ANN401 - boto3 builds the class at run time
        """A client; it is kept, since making one takes longer than a call."""
        return self._clients.get(service) or self._clients.setdefault(service, client(service))

    def _patient(self) -> Any:  # noqa: ANN401 - the same
        """A client that waits for the lookout, which may have to start."""
        kept = self._clients.get(PATIENT)
        return kept or self._clients.setdefault(PATIENT, client("lambda", read_seconds=LOOKOUT_SECONDS))

    def depth(self, worker: str) -> Depth:
        """How many messages there are."""
        sqs = self._client("sqs")

        def of(url: str) -> dict[str, int]:
            with translated("sqs"):
                answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
            return {name: int(value) for name, value in answer["Attributes"].items() if name.startswith("Approximate")}

        source, dead = of(self.stack.queue_of(worker)), of(self.stack.dead_letters_of(worker))
        number = "ApproximateNumberOfMessages"
        return Depth(
            source.get(number, 0),
            source.get(f"{number}NotVisible", 0),
            source.get(f"{number}Delayed", 0),
            dead.get(number, 0) + dead.get(f"{number}NotVisible", 0),
        )

    def receiving(self, worker: str) -> Receiving:
        """How its mapping stands."""
        with translated("lambda"):
            answer = self._client("lambda").get_event_source_mapping(UUID=self.stack.mapping_of(worker).uuid)
        return Receiving(answer["State"], answer.get("ScalingConfig", {}).get("MaximumConcurrency"))

    def measured(self, workers: Sequence[Worker], now: datetime) -> Mapping[str, Mapping[str, float]]:
        """What CloudWatch has of the last minutes."""
        asked: list[tuple[str, str]] = []
        queries: list[dict[str, Any]] = []

        def ask(worker: Worker, name: str, metric: dict[str, Any], statistic: str) -> None:
            asked.append((worker.name, name))
            stat = {"Metric": metric, "Period": int(WINDOW.total_seconds()), "Stat": statistic}
            queries.append({"Id": f"q{len(queries)}", "MetricStat": stat})

        for worker in workers:
            queue = self.stack.queue_of(worker.name).rpartition("/")[2]
            dimensions = [{"Name": "QueueName", "Value": queue}]
            age = {"Namespace": "AWS/SQS", "MetricName": "ApproximateAgeOfOldestMessage", "Dimensions": dimensions}
            ask(worker, "age", age, "Maximum")
            for job in worker.jobs:
                own = [{"Name": "service", "Value": worker.name}, {"Name": JOB_TYPE, "Value": job.name}]
                for name in COUNTED:
                    ask(worker, name, {"Namespace": NAMESPACE, "MetricName": name, "Dimensions": own}, "Sum")
        with translated("cloudwatch"):
            answer = self._client("cloudwatch").get_metric_data(
                MetricDataQueries=queries, StartTime=now - WINDOW - LATE, EndTime=now
            )
        found: dict[str, dict[str, float]] = {worker.name: {} for worker in workers}
        for result in answer["MetricDataResults"]:
            if result["Values"]:
                worker_name, name = asked[int(result["Id"][1:])]
                known = found[worker_name].get(name, 0.0)
                found[worker_name][name] = known + float(result["Values"][0])
        return found

    def edges(self, now: datetime) -> Mapping[str, float]:
        """What CloudWatch has of what the front door took and the outbox gave."""
        queries = [
            {
                "Id": f"e{number}",
                "MetricStat": {
                    "Metric": {
                        "Namespace": NAMESPACE,
                        "MetricName": name,
                        "Dimensions": [{"Name": "service", "Value": writer.value}],
                    },
                    "Period": int(WINDOW.total_seconds()),
                    "Stat": "Sum",
                },
            }
            for number, (name, writer) in enumerate(AT_THE_EDGES.items())
        ]
        with translated("cloudwatch"):
            answer = self._client("cloudwatch").get_metric_data(
                MetricDataQueries=queries, StartTime=now - WINDOW - LATE, EndTime=now
            )
        names = list(AT_THE_EDGES)
        return {names[int(each["Id"][1:])]: each["Values"][0] for each in answer["MetricDataResults"] if each["Values"]}

    def alarms(self) -> Sequence[Ringing]:
        """The alarms whose names CloudFormation began with the stack's."""
        pages = self._client("cloudwatch").get_paginator("describe_alarms")
        with translated("cloudwatch"):
            found = [
                each
                for page in pages.paginate(
                    AlarmNamePrefix=f"{self.stack.name}-", AlarmTypes=["MetricAlarm", "CompositeAlarm"]
                )
                for kind in ("MetricAlarms", "CompositeAlarms")
                for each in page.get(kind, [])
            ]
        return [
            Ringing(
                each["AlarmName"],
                each["StateValue"],
                each.get("AlarmDescription", ""),
                each.get("StateTransitionedTimestamp") or each.get("StateUpdatedTimestamp"),
                each.get("StateReason", ""),
            )
            for each in found
        ]

    def weights(self, function: str) -> Mapping[str, float]:
        """The shares of other versions."""
        with translated("lambda"):
            answer = self._client("lambda").get_alias(FunctionName=function, Name=LIVE)
        found: Mapping[str, float] = answer.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})
        return found

    def ask_lookout(self, question: Mapping[str, object]) -> dict[str, Any]:
        """What the lookout answers."""
        with translated("lambda"):
            answer = self._patient().invoke(
                FunctionName=self.stack.lookout, Qualifier=LIVE, Payload=json.dumps(question).encode()
            )
        told = json.loads(answer["Payload"].read() or b"{}")
        if "FunctionError" in answer or not isinstance(told, dict) or "unavailable" in told:
            why = told.get("unavailable") or told.get("errorType") if isinstance(told, dict) else None
            message = f"The lookout gave no answer ({why or 'it failed'})."
            raise Unavailable(message, dependency="lookout")
        return told
