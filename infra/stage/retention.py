"""How long queues keep messages. Plain Python, no CDK."""

from __future__ import annotations

from datetime import timedelta

from shared.job_record import QUEUE_RETENTION

SOURCE_RETENTION = QUEUE_RETENTION
# Longer than the source's: of a standard queue, what SQS moves keeps the time of its first enqueue (SQS developer guide,
# "Using dead-letter queues").
DEAD_LETTER_RETENTION = timedelta(days=14)
# So what was moved at the last moment is lost this long after the move, which is where a queue's age metric begins.
SHORTEST_REST = DEAD_LETTER_RETENTION - SOURCE_RETENTION
