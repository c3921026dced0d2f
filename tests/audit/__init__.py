"""The gates: each is seen to bite, the product is seen to pass, and exceptions are seen to end."""
