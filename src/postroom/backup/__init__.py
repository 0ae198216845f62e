"""Backups: one file with everything that Postroom keeps, made while it runs, and put back in place when it does not."""
