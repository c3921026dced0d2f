"""What the product does, on moto and a real Valkey: each worker and entry point by its events, the front door by its requests."""
