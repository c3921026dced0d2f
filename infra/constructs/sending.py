"""What relay and sweeper have in common: they send to the queues of workers, which are added one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.constructs.function import Function
from infra.grants import SEND, allow_queue
from shared.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import aws_sqs as sqs
    from constructs import Construct

    from infra.constructs.foundation import Foundation
    from infra.constructs.function import Package, Shape


def sender(scope: Construct, construct_id: str, shape: Shape, foundation: Foundation, package: Package) -> Function:
    """A function that sends what the outbox holds; it may send to nobody yet."""
    environ = sender_settings(foundation, {}).to_environ()
    return Function(
        scope,
        construct_id,
        shape=shape,
        stage=foundation.stage,
        package=package,
        environ=environ,
        key=foundation.key,
    )


def sender_settings(foundation: Foundation, queues: Mapping[str, str]) -> Settings:
    """What such a function is told; `queues` are URLs by worker."""
    tables, stage = foundation.tables, foundation.stage
    return Settings(
        stage=stage.name,
        jobs_table=tables.jobs.table_name,
        outbox_table=tables.outbox.table_name,
        queues=queues,
        pace=stage.pace,
    )


def let_send(function: Function, settings: Settings, queue: sqs.IQueue) -> None:
    """Let such a function send to one more queue, and tell it what the settings say of that queue's worker."""
    allow_queue(function.role, queue, SEND)
    for name, value in settings.to_environ().items():
        function.resource.add_environment(name, value)
