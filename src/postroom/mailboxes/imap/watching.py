"""The IMAP connector, put together: mailbox, switchboard, contacts and filters, news, shutdown."""

import contextlib
from collections.abc import Collection, Generator

from postroom.mailboxes.following.running import ConnectorChores, ConnectorHome
from postroom.mailboxes.imap.account import ImapAccount, OpenSession
from postroom.mailboxes.imap.following.idle import IdleHints
from postroom.mailboxes.imap.following.live import ImapConnector
from postroom.mailboxes.imap.following.place_index import PlaceIndex
from postroom.mailboxes.imap.source import ImapSource


@contextlib.contextmanager
def connector_parts(
    home: ConnectorHome, account: ImapAccount, open_session: OpenSession, hosts: Collection[str] = ()
) -> Generator[ConnectorChores[ImapConnector, ImapSource]]:
    """The connector. Work is done in `account`; `open_session` opens the connection that waits for news. `hosts` are
    the known ones that receive its mail.
    """
    with (
        contextlib.closing(PlaceIndex(home.folder / "places.db")) as index,
        contextlib.closing(IdleHints(open_session, home.settings.imap.poll_s)) as hints,
    ):
        connector = ImapConnector(account, home.switchboard, index, **home.terms(hosts, hints))
        yield home.chores(connector, connector.source)
