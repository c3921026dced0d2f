"""What was released of every payload: schemas and messages that are read as long as they may be in flight."""
