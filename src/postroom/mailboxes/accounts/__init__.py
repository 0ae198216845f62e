"""Accounts: credentials, consent, and the tokens of providers."""
