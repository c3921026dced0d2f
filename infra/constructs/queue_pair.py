"""A source queue and its dead-letter queue, each pointing at the other and at nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict, Unpack

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.names import queue_names
from infra.stage.retention import DEAD_LETTER_RETENTION, SOURCE_RETENTION

if TYPE_CHECKING:
    from datetime import timedelta

    from aws_cdk import aws_kms as kms

    from shared.worker import Worker


class QueueProps(TypedDict):
    """What differs from queue to queue."""

    retention_period: Duration
    queue_name: NotRequired[str]
    fifo: NotRequired[bool | None]  # CDK takes True or nothing
    visibility_timeout: NotRequired[Duration]
    dead_letter_queue: NotRequired[sqs.DeadLetterQueue]
    redrive_allow_policy: NotRequired[sqs.RedriveAllowPolicy]


def seconds(time: timedelta) -> Duration:
    """A declared time as CDK takes it."""
    return Duration.seconds(time.total_seconds())


def encrypted_queue(
    scope: Construct, construct_id: str, *, key: kms.IKey | None, retain: bool, **props: Unpack[QueueProps]
) -> sqs.Queue:
    """A queue that is encrypted at rest and takes only TLS."""
    return sqs.Queue(
        scope,
        construct_id,
        encryption=sqs.QueueEncryption.SQS_MANAGED if key is None else sqs.QueueEncryption.KMS,
        encryption_master_key=key,
        enforce_ssl=True,
        removal_policy=RemovalPolicy.RETAIN if retain else RemovalPolicy.DESTROY,
        **props,
    )


class QueuePair(Construct):
    """The two queues of a worker.

    The source has a name of its own making: the dead-letter queue must name who may use it, the source must name its
    dead-letter queue, and CloudFormation cannot resolve a circle of references.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, worker: Worker, key: kms.IKey | None, retain: bool
    ) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        name, dead_name = queue_names(stack.stack_name, worker)
        source_arn = stack.format_arn(service="sqs", resource=name)
        self.dead_letters = encrypted_queue(
            self,
            "DeadLetters",
            key=key,
            retain=retain,
            queue_name=dead_name,
            fifo=worker.fifo or None,
            retention_period=seconds(DEAD_LETTER_RETENTION),
            redrive_allow_policy=sqs.RedriveAllowPolicy(
                redrive_permission=sqs.RedrivePermission.BY_QUEUE,
                source_queues=[sqs.Queue.from_queue_arn(self, "SourceByName", source_arn)],
            ),
        )
        self.source = encrypted_queue(
            self,
            "Source",
            key=key,
            retain=retain,
            queue_name=name,
            fifo=worker.fifo or None,
            retention_period=seconds(SOURCE_RETENTION),
            visibility_timeout=seconds(worker.visibility_timeout),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=worker.max_receive_count),
        )
