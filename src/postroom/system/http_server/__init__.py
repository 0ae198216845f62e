"""Shared by all HTTP listeners of Postroom: limits on connections and requests, and a check of the bind address."""
