"""Masks secrets in output: passwords inside URLs, and whole values that are secret."""

import re

HIDDEN = "**********"

# Greedy up to the last "@": a password may contain any character, percent-encoded or not.
_PASSWORD_IN_URL = re.compile(r"(://[^\s:/@]*):(\S*)@")
_PASSWORD_IN_QUERY = re.compile(r"(?i)([?&][\w-]*(?:password|token|secret|key)=)[^&\s#]+")


def masked_urls(text: str) -> str:
    """The text with every password inside a URL replaced by stars."""
    return _PASSWORD_IN_QUERY.sub(r"\1***", _PASSWORD_IN_URL.sub(r"\1:***@", text))


def masked_path(url: str) -> str:
    """The URL up to its host: the path of a webhook lets in whoever knows it."""
    host, slash, path = url.removeprefix(scheme := f"{url.partition('://')[0]}://").partition("/")
    return f"{scheme}{host}{slash}{'***' if path else ''}"


def passwords_in(text: str) -> list[str]:
    """The passwords inside the URLs of a text, so that they can be masked elsewhere."""
    return [match.group(2) for match in _PASSWORD_IN_URL.finditer(text)]
