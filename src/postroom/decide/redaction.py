"""Hides in a text what a model of others need not know to sort mail: addresses, numbers that identify, URLs' secrets.

Mail is hostile: every pattern is RE2, whose time grows with the text and not with how clever it is.
"""

from typing import Protocol

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False

# In this order: what an earlier one hides, a later one no longer sees.
_URL_SECRETS = re2.compile(r"(?i)\b(https?://)(?:[^\s/?#@<>\"']*@)?([^\s?#<>\"']*)(?:[?#][^\s<>\"']*)?", _OPTIONS)
_ADDRESS = re2.compile(r"[^\s@<>()\[\],;:\"'=]+@[^\s@<>()\[\],;:\"'=]+", _OPTIONS)
_HIDDEN = (
    (re2.compile(r"(?i)\b[a-z]{2}[0-9]{2}(?:[ \-]?[a-z0-9]{4}){2,7}(?:[ \-]?[a-z0-9]{1,4})?\b", _OPTIONS), "[iban]"),
    (re2.compile(r"\b[0-9](?:[ \-]?[0-9]){12,18}\b", _OPTIONS), "[card]"),
    (re2.compile(r"(?:\+|\b00|\(0|\b0)[0-9()](?:[ \-./()]{0,3}[0-9]){5,14}", _OPTIONS), "[phone]"),
    (re2.compile(r"\(?\b[0-9]{3}\)?[ \-.][0-9]{3}[ \-.][0-9]{4}\b", _OPTIONS), "[phone]"),
    (re2.compile(r"[0-9](?:[ \-]?[0-9]){5,}", _OPTIONS), "[number]"),
)


class Found(Protocol):
    """A match, by its groups."""

    def __getitem__(self, group: int, /) -> str | None: ...


def redacted(text: str, sender: str) -> str:
    """The text without addresses other than the sender's, phone, card, account and other long numbers, and without what
    follows the path in a URL, where tokens stand."""
    kept = sender.lower()
    text = _URL_SECRETS.sub(_plain_url, text)
    text = _ADDRESS.sub(lambda match: _kept_or_hidden(match, kept), text)
    for pattern, word in _HIDDEN:
        text = pattern.sub(word, text)
    return text


def _kept_or_hidden(match: Found, kept: str) -> str:
    address = match[0] or ""
    return address if address.strip(".").lower() == kept else "[address]"


def _plain_url(match: Found) -> str:
    plain = f"{match[1]}{match[2]}"
    return plain if plain == match[0] else f"{plain}[…]"
