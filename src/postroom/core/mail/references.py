"""The ids by which an answer belongs to its conversation (RFC 5322, `References`)."""

from postroom.core.mail.headers import Headers, values
from postroom.core.mail.tiers import message_ids

LONGEST_ID = 250
MOST_REFERENCES = 20


def thread_references(headers: Headers) -> list[str]:
    """The first and the latest ids of the conversation; the last is that of the message itself. Empty without one."""
    own = [id for value in values(headers, "message-id") for id in _usable_ids(value)][:1]
    if not own:
        return []
    earlier = [each for value in values(headers, "references") for each in _usable_ids(value) if each != own[0]]
    if len(earlier) >= MOST_REFERENCES:
        earlier = [earlier[0], *earlier[2 - MOST_REFERENCES :]]
    return [*earlier, *own]


def _usable_ids(value: str) -> list[str]:
    return [id for id in message_ids(value) if len(id) <= LONGEST_ID and id.isascii() and id.isprintable()]
