"""Valkey or Redis: leases, cache entries, gates and rates. All of it may be lost at any moment."""
