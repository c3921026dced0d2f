"""A developers' tool: runs the alarms and draws the dashboard of a synthesised template, over recorded or made-up metrics."""
