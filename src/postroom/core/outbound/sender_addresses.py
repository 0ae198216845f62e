"""The addresses that a sender may write in From: patterns such as `ada@example.com` and `*@example.com`."""

import re
from collections.abc import Iterable
from functools import lru_cache

from postroom.core.mail.addresses import canonical


def may_send_as(patterns: Iterable[str], address: str) -> bool:
    """Whether the address is one of the sender's. A `*` matches any characters on its own side of the @."""
    found = canonical(address)
    return found is not None and any(_pattern(each).fullmatch(found) for each in patterns)


@lru_cache(10_000)
def _pattern(text: str) -> re.Pattern[str]:
    local, _, domain = text.lower().rpartition("@")
    return re.compile("@".join((_matching(local, r".*"), _matching(domain, r"[^@]*"))), re.DOTALL)


def _matching(text: str, anything: str) -> str:
    return anything.join(map(re.escape, text.split("*")))
