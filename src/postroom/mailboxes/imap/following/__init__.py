"""The IMAP connector: brings mail from any IMAP server to the switchboard."""
