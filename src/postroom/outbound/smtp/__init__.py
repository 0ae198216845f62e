"""Delivers mail to other servers by SMTP; knows nothing of ours but the core."""
