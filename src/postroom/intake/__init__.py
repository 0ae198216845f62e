"""The switchboard: accepts events, queues them by tier, and hands them to consumers."""
