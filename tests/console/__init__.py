"""The console: its guard, pages and changes at a desk of memory, and the whole of it in a real browser."""
