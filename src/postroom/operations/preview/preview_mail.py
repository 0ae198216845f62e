"""The mail of a preview: whose it is, and whether it is mail at all."""

from collections.abc import Sequence

from postroom.core.errors import BadInput
from postroom.core.mail.addresses import canonical
from postroom.core.mail.ingestion import IngestionPolicy
from postroom.core.mail.providers import known_receiving_hosts
from postroom.core.mail.tiers import Known
from postroom.operations.preview.arrivals import MailHistory, Recipient
from postroom.operations.preview.preview import Previewed

NO_HEADER = "there is no header"
NOBODY = "nobody@invalid"
MOST_NAMED = 3


def recipient_of(
    history: MailHistory,
    users: Sequence[str],
    contacts: frozenset[str] | None,
    filters: IngestionPolicy,
    hosts: frozenset[str] | None = None,
) -> Recipient:
    """The mailbox that the mail is for: of the given address, or of the one that most messages are for. People whom the
    user wrote to are contacts, as they are for live mail; `hosts` are those that receive mail for it, by
    default all that are known.
    """
    mine = list(map(own_address, users)) or [address for address, _ in history.recipients.most_common(1)]
    addresses = frozenset(mine)
    sent = history.sent_by(addresses)
    if contacts is not None or sent.correspondents:
        contacts = (contacts or frozenset()) | sent.correspondents
    known = Known(addresses, contacts or frozenset(), sent.ids, known_receiving_hosts() if hosts is None else hosts)
    return Recipient(mine[0] if mine else NOBODY, known, contacts, history.first_sent, filters=filters)


def user_warnings(history: MailHistory, users: Sequence[str], recipient: Recipient) -> list[str]:
    """Warnings about addresses that are probably not the user's, and who the user seems to be if nobody said so."""
    total = history.senders.total()
    if not users:
        if recipient.email == NOBODY:
            return ["no message names a recipient; give your address with --user"]
        count = history.recipients[recipient.email]
        return [f"you are taken for {recipient.email}, whom {count:,} of {total:,} messages are for; or give --user"]
    found: list[str] = []
    for given in users:
        address = own_address(given)
        if history.recipients[address] == 0 and history.senders[address] == 0:
            often = ", ".join(f"{each} ({count:,})" for each, count in history.recipients.most_common(MOST_NAMED))
            found.append(f"no message is for or from {address}; most are for {often or 'nobody'}")
    return found


def check_is_mail(place: str, rows: Sequence[Previewed]) -> None:
    """Raise BadInput if there is no message, or nothing of it is mail."""
    remedy = "give an mbox, a Maildir, a folder of .eml files, or one message"
    if not rows:
        raise BadInput("PATH", f"{place!r} has no message", remedy)
    if any(NO_HEADER not in (row.problem or "") for row in rows):
        return
    what = "is no mail: it has no header" if len(rows) == 1 else f"has no mail: none of {len(rows):,} has a header"
    raise BadInput("PATH", f"{place!r} {what}", remedy)


def own_address(given: str) -> str:
    """An address of the user in canonical form. Raises BadInput."""
    found = canonical(given)
    if found is None:
        raise BadInput("--user", f"{given!r} is not an address", "give yours, such as mara@lindqvist.example")
    return found
