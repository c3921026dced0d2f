"""Measurements, each a command; results of a run are kept beside them."""
