"""The page that follows when a mailbox was connected: a look at its mail, unless Postroom is on for it already."""

from contextlib import suppress

from postroom.core.errors import Refused
from postroom.operations.accounts.accounts import AccountView
from postroom.operations.parts import Parts

LOOK = "/start"


def page_after_connecting(parts: Parts, account: AccountView, otherwise: str) -> str:
    """Return its address. The look begins at once."""
    if account.acts_from is not None:
        return otherwise
    with suppress(Refused):  # too many are under way: the page has a button for it
        parts.first_looks.begin(account)
    return f"{LOOK}?account={account.id}"
