"""The dashboard as plain data, from the same declarations and metrics as the alarms. No CDK."""
