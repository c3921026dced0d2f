"""Tests, a folder a layer."""
