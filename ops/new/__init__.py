"""Writes a new worker that is green at once."""
