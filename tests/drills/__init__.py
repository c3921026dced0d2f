"""Drills: what goes wrong for long, played in full with the product's own code, and told as an operator would want to hear it."""
