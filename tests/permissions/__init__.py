"""What functions are allowed, beside what they were seen to do: every call is granted, and what was never seen has its reason."""
