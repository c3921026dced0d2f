"""What breaks: real processes that kill themselves, connections that are cut, servers that forget; and what holds then."""
