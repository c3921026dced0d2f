"""How a declared name is spelled where it is deployed. Plain Python, no CDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.errors import DeclarationError

if TYPE_CHECKING:
    from infra.stage.settings import Stage
    from shared.worker import Worker

LONGEST_QUEUE_NAME = 80  # ".fifo" included (Amazon SQS API reference, CreateQueue)
DEAD_LETTERS = "-dead-letters"
FIFO = ".fifo"
# Modules of functions/ that are none of a worker, by the worker's name that would lead to them.
NO_WORKERS = frozenset({"registry", "outbox-relay", "outbox-sweeper", "front-door", "lookout", "part-counter"})


def stack_name(stage: Stage) -> str:
    """The name of a stage's stack."""
    return f"{stage.prefix}-{stage.name}"


def module_of(worker: Worker) -> str:
    """The module that holds a worker's handler: `functions.order_lines` of `order-lines`."""
    return f"functions.{worker.name.replace('-', '_')}"


def queue_names(stack: str, worker: Worker) -> tuple[str, str]:
    """The names of a worker's source and dead-letter queue in a stack.

    Raises:
        DeclarationError: the name is the product's own, or makes a queue's name that SQS would not take.
    """
    if worker.name in NO_WORKERS:
        message = (
            f"worker {worker.name!r}: {module_of(worker)} is a module of the product and holds no worker's handler:"
            " call it otherwise."
        )
        raise DeclarationError(message)
    if worker.name.endswith(DEAD_LETTERS):
        message = f"worker {worker.name!r}: its queue would be called like a dead-letter queue: call it otherwise."
        raise DeclarationError(message)
    suffix = FIFO if worker.fifo else ""
    source, dead = f"{stack}-{worker.name}{suffix}", f"{stack}-{worker.name}{DEAD_LETTERS}{suffix}"
    if len(dead) > LONGEST_QUEUE_NAME:
        parts = (f"{stack}-", worker.name, f"{DEAD_LETTERS}{suffix}")
        message = (
            f"worker {worker.name!r}: its dead-letter queue {dead!r} has {' + '.join(str(len(p)) for p in parts)} ="
            f" {len(dead)} characters, SQS takes {LONGEST_QUEUE_NAME}: shorten the worker's name or the stage's by"
            f" {len(dead) - LONGEST_QUEUE_NAME}."
        )
        raise DeclarationError(message)
    return source, dead
