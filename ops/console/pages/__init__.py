"""The pages of the console, one subject a module."""
