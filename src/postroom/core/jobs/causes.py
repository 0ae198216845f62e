"""The cause of an error without what differs from one job to the next, so that alike errors can be grouped."""

import re

LONGEST = 160
_DIFFERS = re.compile(
    r"""
      [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}   # ids
    | [^\s@<>"']+@[^\s@<>"',;:]+                    # addresses
    | \d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-][\d:]+)?   # times
    | \b[0-9a-f]{12,}\b                             # ids of a provider
    | \d+(?:[.,]\d+)*                               # numbers
    """,
    re.VERBOSE | re.IGNORECASE,
)
_KEPT_NUMBER = re.compile(r"\b[1-5]\d\d\b")


def cause_of(error: str | None) -> str:
    """Return the error with ids, addresses, times and numbers as `…`. Three digits that may be a status code stay."""
    text = " ".join((error or "no reason was recorded").split())
    cause = _DIFFERS.sub(lambda found: found[0] if _KEPT_NUMBER.fullmatch(found[0]) else "…", text[: LONGEST * 4])
    return cause if len(cause) <= LONGEST else cause[: LONGEST - 1] + "…"
