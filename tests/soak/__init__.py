"""A soak: real workers under load while processes, Valkey, connections and answers fail at random; then the books are made."""
