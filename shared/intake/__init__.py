"""From a client's request to an accepted job, before any message exists: what is asked, refused, promised and told."""
