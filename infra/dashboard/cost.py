"""What the stack spends, estimated from what is counted; without the cache, network, logs and metrics.

SQS is billed by request, of up to ten messages: the
estimate takes each message for a request, and is too high for full batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra import prices
from infra.alarms.metric import DELETED, SENT, Expression, of_function, of_queue, of_table
from infra.prices import MILLION

if TYPE_CHECKING:
    from collections.abc import Sequence

MINUTES = 60  # in an hour, which is what is shown


@dataclass(frozen=True, slots=True)
class Billed:
    """A function; its memory is in MiB."""

    name: str
    memory: int


def lambda_dollars(functions: Sequence[Billed], processor: str) -> Expression:
    """Dollars an hour for functions."""
    metrics, terms = {}, []
    for place, each in enumerate(functions):
        metrics[f"i{place}"] = of_function(each.name, "Invocations")
        metrics[f"d{place}"] = of_function(each.name, "Duration")
        second = each.memory / 1024 * prices.GB_SECOND[processor]
        terms.append(
            f"FILL(i{place}, 0) * {prices.INVOCATIONS / MILLION:.10f} + FILL(d{place}, 0) / 1000 * {second:.10f}"
        )
    return Expression(f"{MINUTES} * ({' + '.join(terms)})", metrics)


def sqs_dollars(queues: Sequence[str]) -> Expression:
    """Dollars an hour for messages: each is sent, received and deleted."""
    metrics = {f"s{place}": of_queue(queue, SENT, "Sum") for place, queue in enumerate(queues)}
    metrics |= {f"d{place}": of_queue(queue, DELETED, "Sum") for place, queue in enumerate(queues)}
    terms = [f"FILL(s{place}, 0) + 2 * FILL(d{place}, 0)" for place in range(len(queues))]
    return Expression(f"{MINUTES * prices.SQS_REQUESTS / MILLION:.10f} * ({' + '.join(terms)})", metrics)


def dynamodb_dollars(tables: Sequence[str]) -> Expression:
    """Dollars an hour for reads and writes."""
    metrics, terms = {}, []
    for place, table in enumerate(tables):
        metrics[f"w{place}"] = of_table(table, "ConsumedWriteCapacityUnits")
        metrics[f"r{place}"] = of_table(table, "ConsumedReadCapacityUnits")
        terms.append(
            f"FILL(w{place}, 0) * {prices.WRITE_UNITS / MILLION:.10f} + FILL(r{place}, 0) * {prices.READ_UNITS / MILLION:.10f}"
        )
    return Expression(f"{MINUTES} * ({' + '.join(terms)})", metrics)
