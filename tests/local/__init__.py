"""Tests of the local stack."""
