"""The stack on one machine: the synthesised template in an AWS stand-in, a real Valkey, our own payment provider."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
