"""SQS: a worker's queue and its dead-letter queue."""
