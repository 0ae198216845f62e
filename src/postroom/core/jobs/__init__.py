"""Jobs: their types, states and retries."""
