"""The import demo: a large file goes through the running stack while workers are killed, and all is counted."""
