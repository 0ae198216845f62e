"""The installation: its checks, its database, backups, settings, and long work."""
