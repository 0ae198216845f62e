"""Mailboxes: the accounts, what follows and fetches from every mailbox, and one folder for each provider."""
