"""DynamoDB: business items, job records, the outbox, and all else that decides."""
