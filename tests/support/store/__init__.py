"""Setups on a database, and cases for every verb of the store."""
