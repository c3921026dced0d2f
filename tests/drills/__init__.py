"""Drills: what operators do on a bad day, played through with the product's own parts. `make drill` plays all of them."""

from __future__ import annotations
