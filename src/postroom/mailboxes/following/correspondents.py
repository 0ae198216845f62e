"""Learns from the mail the user has sent: its ids identify replies, its recipients are people the user knows.

Mail that a program sent from the mailbox is none of it: the recipient of an automatic reply is nobody the user knows.
"""

from collections.abc import Iterable, Sequence

import structlog

from postroom.core.errors import BadInput
from postroom.core.mail.addresses import addresses
from postroom.core.mail.auto_reply import is_automatic
from postroom.core.mail.headers import values
from postroom.core.mail.own_mail import RECIPIENTS
from postroom.core.mail.tiers import message_ids
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.refused import reason_of
from postroom.mailboxes.following.reports import TakesCorrespondents
from postroom.mailboxes.following.source import SourceMessage

log = structlog.get_logger()

MOST_AT_ONCE = 100


class Correspondents:
    """When `learn` returns, the switchboard has stored the addresses, and they count for tiers at once."""

    def __init__(self, switchboard: object, knowledge: Knowledge) -> None:
        self._switchboard = switchboard
        self._knowledge = knowledge

    async def learn(self, sent: Iterable[SourceMessage], only_new: bool = False) -> int:
        """Learn from these messages; return how many people were reported. `only_new` leaves out known ones."""
        recipients: dict[str, None] = {}
        ids: list[str] = []
        for headers in (each.readable_headers() for each in sent):
            if is_automatic(headers):
                continue
            ids += [id for value in values(headers, "message-id") for id in message_ids(value)]
            for name in RECIPIENTS:
                recipients.update((each, None) for value in values(headers, name) for each in addresses(value))
        known = self._knowledge.known().contacts if only_new else frozenset[str]()
        others = [each for each in recipients if not self._knowledge.is_mine(each) and each not in known]
        await self._report(others)
        if ids:
            self._knowledge.sent.add(ids)
        return len(others)

    async def _report(self, people: Sequence[str]) -> None:
        if not isinstance(self._switchboard, TakesCorrespondents):
            return
        for at in range(0, len(people), MOST_AT_ONCE):
            some = people[at : at + MOST_AT_ONCE]
            try:
                await self._switchboard.correspondents(some)
            except BadInput as error:
                log.error("connector.correspondents_refused", reason=reason_of(error))
            else:
                self._knowledge.add_contacts(some)
