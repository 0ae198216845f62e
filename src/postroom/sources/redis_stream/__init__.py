"""Events from a Redis stream, for the gateway queue."""
