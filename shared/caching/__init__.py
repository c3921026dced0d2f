"""How a read goes through the cache: what is stored, for how long, who refills it, and what happens without it. Users call shared.cache."""
