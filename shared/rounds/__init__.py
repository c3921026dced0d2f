"""What goes round beside the jobs: it sends the outbox, rescues lost jobs, starts recurring ones, counts parts, brakes queues."""
