"""The shipped twin of every technology, in memory: for tests and the simulator; it passes the same conformance suite."""
