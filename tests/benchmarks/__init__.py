"""Tests of what is measured, and of the model."""
