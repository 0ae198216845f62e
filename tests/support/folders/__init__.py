"""A third, tiny provider: mailboxes of folders in memory (`support/folder_mailbox.py`), each opened with a password.

It is registered by one entry: `PROVIDERS["folders"] = "support.folders"`.
"""
