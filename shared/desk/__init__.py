"""The desk: dead-letter queues as operators work on them, and what people change about the jobs behind the letters."""
