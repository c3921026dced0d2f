"""How Lambda calls a function, small and with its true semantics, where no stand-in is needed: SQS mapping and HTTP API."""
