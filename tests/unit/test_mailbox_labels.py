"""A label is found by its name or id among the user's own."""

import pytest

from postroom.core.mail.mailbox import MailboxLabel, find_label

RECEIPTS = MailboxLabel("Label_1", "Receipts", False)
TRAVEL = MailboxLabel("Label_2", "Travel", False)
CONFUSING = MailboxLabel("Label_3", "label_1", False)
INBOX = MailboxLabel("INBOX", "Inbox", True)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("receipts", RECEIPTS),
        ("Label_2", TRAVEL),
        ("Label_1", CONFUSING),
        ("label_2", None),
        ("INBOX", None),
        ("Inbox", None),
        ("Legal", None),
    ],
)
def test_a_label_is_found_by_name_and_else_by_id(name: str, found: MailboxLabel | None) -> None:
    assert find_label([INBOX, RECEIPTS, TRAVEL, CONFUSING], name) == found
