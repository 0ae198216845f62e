"""People and programs that may enter: sign-in, sessions, tokens, and the audit log."""
