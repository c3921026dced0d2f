"""What relay and sweeper have in common: they send to the queues of workers, which are added one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.constructs.function import Function
from infra.grants import SEND, allow_queue

if TYPE_CHECKING:
    from aws_cdk import aws_sqs as sqs
    from constructs import Construct

    from infra.constructs.foundation import Foundation
    from infra.constructs.function import Package, Shape
    from shared.settings import Settings


def sender(scope: Construct, construct_id: str, shape: Shape, foundation: Foundation, package: Package) -> Function:
    """A function that sends what the outbox holds; it may send to nobody yet."""
    return Function(
        scope,
        construct_id,
        shape=shape,
        stage=foundation.stage,
        package=package,
        environ=foundation.settings.to_environ(),
        key=foundation.key,
    )


def let_send(function: Function, settings: Settings, queue: sqs.IQueue) -> None:
    """Let such a function send to one more queue, and tell it what the settings say of that queue's worker."""
    allow_queue(function.role, queue, SEND)
    for name, value in settings.to_environ().items():
        function.resource.add_environment(name, value)
