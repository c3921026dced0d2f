"""The APIs of outside systems, as jobs call them: one system a module."""
