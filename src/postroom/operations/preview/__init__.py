"""A preview of what Postroom would do with mail that it has not been given."""
