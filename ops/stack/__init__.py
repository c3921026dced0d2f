"""A stack, on AWS or on this machine, as its operators see it: where it is, what runs in it, what an update would change."""
