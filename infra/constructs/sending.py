"""What relay and sweeper have in common: they send to the queues of workers, which are added one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.grants import SEND, allow_queue
from shared.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import aws_sqs as sqs

    from infra.constructs.foundation import Foundation
    from infra.constructs.function import Function


def sender_settings(foundation: Foundation, queues: Mapping[str, str]) -> Settings:
    """What a function is told that sends what the outbox holds; `queues` are URLs by worker."""
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
