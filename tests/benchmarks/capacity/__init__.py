"""Tests of the capacity model: its arithmetic, its two forms, and the page that tells of it."""
