"""A deterministic simulator: the product's own pipeline over memory stores, in virtual time, under a seeded scheduler."""
