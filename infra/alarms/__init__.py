"""Alarms as plain data: what each watches, when it rings, what it says. No CDK: `infra/constructs/alarms.py` makes them."""
