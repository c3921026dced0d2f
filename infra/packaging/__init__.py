"""What is uploaded for a function: our modules that it imports, its dependencies for its target, nothing else. Plain Python."""
