"""The front door from the inside: who calls, which routes there are, and what each answers. No worker imports it."""
