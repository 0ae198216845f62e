"""A mailbox over IMAP with access tokens, as its owner meets it: the consent to their own app at Microsoft or Google,
with a Dovecot that asks the provider about each token.
"""

import io
import webbrowser
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from postroom.mailboxes.accounts.book import AccountBook
from postroom.mailboxes.imap.mailboxes import ImapProvider
from postroom.mailboxes.providers import ProviderParts
from postroom.operations.installation.vault import vault_of
from postroom.settings.reading import load_settings
from postroom.store.engine.database import Database
from support.dovecot import running_dovecot
from support.gates import OpenGate
from support.google import ADA, Google, agreeing_browser, google_in_a_thread
from support.imap_server import ImapServer, authority
from support.microsoft import Microsoft, microsoft_in_a_thread
from support.patience import PATIENCE_S
from support.shell import Shell, on_database


@dataclass
class Servers:
    microsoft: Microsoft
    google: Google
    dovecot: ImapServer

    def where(self, folder: Path) -> list[str]:
        file = folder / "ca.pem"
        authority().cert_pem.write_to_path(str(file))
        return ["--imap-host", "127.0.0.1", "--imap-port", str(self.dovecot.tls_port), "--ca-file", str(file)]


@pytest.fixture(scope="module")
def servers() -> Generator[Servers]:
    with microsoft_in_a_thread() as microsoft, google_in_a_thread() as google:
        checks = {
            f"{microsoft.address}/introspect?token=": "username",
            f"{google.address}/tokeninfo?access_token=": "email",
        }
        with running_dovecot(checks=checks) as dovecot:
            yield Servers(microsoft, google, dovecot)


OWNER = "mara@lindqvist.example"


class Owner:
    """Somebody at a terminal without a browser, who opens the printed address elsewhere and pastes where it ends."""

    def __init__(self, shell: Shell, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shell = shell
        self.servers = servers
        self.printed: list[str] = []
        self._patch = monkeypatch
        for name, value in {**servers.microsoft.settings(), **servers.google.settings()}.items():
            monkeypatch.setenv(name, value)

    def add(self, *options: str) -> int:
        where = self.servers.where(self.shell.folder)
        return self.shell("account", "add", "imap", "--json", *where, *options)

    def paste(self, *options: str) -> int:
        printed = self.printed = []

        class Elsewhere(io.StringIO):
            def readline(self, _size: int | None = -1, /) -> str:
                url = next(word for text in printed for word in text.split() if word.startswith("http"))
                return httpx2.get(url, timeout=PATIENCE_S).headers["location"] + "\n"

        with self._patch.context() as patch:
            patch.setattr("typer.echo", lambda text="", **_more: printed.append(str(text)))  # type: ignore[reportUnknownLambdaType]
            patch.setattr("sys.stdin", Elsewhere())
            return self.add("--no-browser", *options)

    def accounts(self) -> list[dict[str, str]]:
        assert self.shell("account", "list", "--json") == 0, self.shell.err
        return self.shell.json()

    async def use(self, database: Database, account_id: UUID) -> None:
        """As a worker does that starts now, with the stored consent alone."""
        settings = load_settings()
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            provider = ImapProvider(
                ProviderParts(settings, AccountBook(database, lambda: vault_of(settings)), http, OpenGate())
            )
            mailbox = await provider.mailbox(account_id)
            assert "INBOX" in [each.id for each in await mailbox.labels()]
            await provider.aclose()


@pytest.fixture
def owner(shell: Shell, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Owner:
    return Owner(shell, servers, monkeypatch)


def test_a_mailbox_at_microsoft_is_connected_by_the_pasted_address_and_signed_in_to_by_the_stored_consent(
    owner: Owner,
) -> None:
    microsoft = owner.servers.microsoft
    assert owner.paste("--email", OWNER, "--sign-in", "microsoft") == 0, owner.printed
    (account,) = owner.accounts()
    assert (account["email"], account["state"], account["level"]) == (OWNER, "active", None)
    for _ in range(2):
        before = microsoft.refreshes
        on_database(owner.shell, lambda database: owner.use(database, UUID(account["id"])))
        assert microsoft.refreshes == before + 1, "each time with the refresh token that replaced the last one"
    files = [each.read_bytes() for each in Path("postroom-data").rglob("*") if each.is_file()]
    said = "".join((*owner.printed, owner.shell.out, owner.shell.err))
    assert files
    assert microsoft.issued
    assert not any(token.encode() in each for token in microsoft.issued for each in files)
    assert not any(token in said for token in microsoft.issued)
    assert owner.paste("--email", OWNER) == 2
    assert any("say whose app has the consent: google or microsoft" in each for each in owner.printed)
    assert owner.paste("--email", OWNER, "--sign-in", "microsoft") == 0, owner.printed
    assert any("its consent is renewed" in each for each in owner.printed)
    assert owner.shell("account", "remove", OWNER) == 0
    assert "https://account.microsoft.com/privacy/app-access" in owner.shell.err


def test_a_mailbox_at_google_is_connected_in_the_browser_and_its_consent_ends_with_the_account(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    consents, seen = owner.servers.google.emulator.consents, list[str]()
    monkeypatch.setattr(webbrowser, "open", agreeing_browser(seen))
    assert owner.add("--email", ADA, "--sign-in", "google") == 0, owner.shell.err
    (account,) = owner.accounts()
    assert "You can close this page" in seen[0]
    on_database(owner.shell, lambda database: owner.use(database, UUID(account["id"])))
    (grant,) = (each for each in consents.grants if not each.revoked)
    assert grant.scopes == {"https://mail.google.com/"}
    assert owner.shell("account", "remove", ADA) == 0
    assert grant.revoked


def test_a_consent_to_another_mailbox_is_refused_by_its_server_and_nothing_is_stored(owner: Owner) -> None:
    owner.servers.microsoft.chosen = "somebody@else.example"
    try:
        assert owner.paste("--email", OWNER, "--sign-in", "microsoft") == 1
    finally:
        owner.servers.microsoft.chosen = None
    said = " ".join(owner.printed)
    assert "127.0.0.1 does not accept the access token (AUTHENTICATIONFAILED); consent again, as the owner" in said
    assert owner.accounts() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--email", "ada@outlook.com"], "use `postroom account add imap --sign-in microsoft`"),
        (["--email", ADA, "--sign-in", "apple"], "--sign-in"),
        (["--email", ADA, "--no-browser"], "--no-browser"),
        (["--email", ADA, "--sign-in", "google", "--other-smtp-password"], "--other-smtp-password"),
        (["--email", ADA, "--sign-in", "microsoft"], "microsoft.client_id is not set; register your own app"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    owner: Owner, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    monkeypatch.delenv("POSTROOM_MICROSOFT_CLIENT_ID")
    command = owner.add if "outlook.com" not in options[1] else partial(owner.shell, "account", "add", "imap")
    assert command(*options) != 0
    assert said in owner.shell.err
