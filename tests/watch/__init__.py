"""Tests of the tool that runs the alarms and draws the dashboard, and of both by it."""
