"""Mailboxes of people: connect them, check them, and what is known of them."""
