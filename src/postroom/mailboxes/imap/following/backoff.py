"""How long to leave a mail server alone after an error. Pure."""

from datetime import timedelta
from random import Random, SystemRandom

from postroom.core.errors import MailboxLater, NeedsPerson, NeedsRepair

LONGEST = timedelta(minutes=10)
# Each attempt with a password that the server has refused brings the account closer to being locked.
LONGEST_WITHOUT_PERSON = timedelta(minutes=30)
SPREAD = 0.25
SYSTEM_RANDOM = SystemRandom()
"""One for all accounts: each has a state of 2.5 KB that it never uses."""


def pause_after(error: Exception, failures: int, first: timedelta, rng: Random) -> timedelta:
    """The pause after so many failures one after another: twice as long each time, never shorter than the server asked
    for, and up to a quarter longer, so that the accounts of one server do not all return in the same moment.
    """
    asked = (isinstance(error, MailboxLater) and error.retry_after) or timedelta(0)
    is_refused = isinstance(error, NeedsPerson) and not isinstance(error, NeedsRepair)
    longest = LONGEST_WITHOUT_PERSON if asked or is_refused else LONGEST
    grown = max(first, asked) * 2 ** min(max(failures - 1, 0), 20)
    return max(min(grown, longest), asked) * (1 + SPREAD * rng.random())
