"""Tests of the pages that follow from the code."""
