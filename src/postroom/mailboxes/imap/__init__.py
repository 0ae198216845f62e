"""Mailboxes on any server, over IMAP."""
