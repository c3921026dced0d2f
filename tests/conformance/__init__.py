"""Each Protocol of `shared`, and what keeps it: one suite for every store, real and in memory."""
