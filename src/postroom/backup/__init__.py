"""Backups: one file with everything that Postroom stores, made while it runs, and restored while it is stopped."""
