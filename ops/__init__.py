"""The operator: a command line over the same functions, for a stack on AWS and for the one on this machine alike."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
