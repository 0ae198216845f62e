"""The overview: what needs a person, the road of messages, and figures over time."""
