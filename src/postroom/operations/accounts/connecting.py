"""Connect mailboxes with their owners' consent, and remove them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, cast

from postroom.core.access import ADMINISTER, OWN_AGAIN
from postroom.core.errors import BadInput, VaultError
from postroom.core.mail.account_repair import connect_command
from postroom.core.mail.accounts import normalised_address, same_mailbox
from postroom.core.mail.secret_fields import REFRESH_TOKEN
from postroom.mailboxes.accounts.book import AccountBook
from postroom.mailboxes.gmail.facts import NAME
from postroom.mailboxes.gmail.oauth import GoogleApp, GoogleConsentRefused, GoogleOAuth, address_of, begin_consent
from postroom.mailboxes.gmail.scopes import (
    DEFAULT_LEVEL,
    Consented,
    Level,
    covered,
    granted_level,
    is_lower,
    missing_scopes,
    needs_more,
)
from postroom.mailboxes.oauth.consent import ConsentRequest
from postroom.mailboxes.oauth.tokens import Grant
from postroom.mailboxes.providers import provider_named
from postroom.operations.accounts.accounts import LINE, AccountName, account_of, account_row, find_account
from postroom.operations.actions.pausing import forbid_and_wait
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.installation.vault import vault_of
from postroom.operations.nouns import CONNECTORS
from postroom.operations.operation import command, flow
from postroom.settings.reading import Settings
from postroom.store.accounts import accounts
from postroom.store.accounts.accounts import AccountView, Consent
from postroom.vault.sealing import Vault

TIMEOUT_S = 30

Begin = Callable[[str], ConsentRequest]
"""Creates a consent request whose answer comes back to the given address."""


class CodeDialog(Protocol):
    """How the owner gets to the provider's page, and its answer back to Postroom."""

    async def code(self, begin: Begin) -> tuple[ConsentRequest, str]:
        """Show the request that `begin` creates, and return it with the code that answers it."""
        ...


class ConsentDialog(CodeDialog, Protocol):
    """The same for a mailbox of which only that page tells whose it is."""

    def renewing(self, account: AccountView) -> None:
        """Tell the owner that the mailbox is already connected and its consent is renewed."""
        ...


class WantedConsent(NamedTuple):
    """The requested consent: a level, by default the account's present one, and additional scopes."""

    email: str | None
    level: Level | None
    beside: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConnectedAccount:
    """The account, and warnings about its consent: less than requested, or about to end."""

    account: AccountView
    warnings: Sequence[str]


async def add_gmail(
    by: Caller, vault: Vault, app: GoogleApp, gmail_url: str, wanted: WantedConsent, dialog: ConsentDialog
) -> ConnectedAccount:
    """Ask for consent to a Gmail mailbox and connect it, or renew its account's consent."""
    import httpx2  # only when it is needed: most commands about accounts make no request

    await prepare(by.database)
    email = wanted.email
    before = None if email is None else await account_of(by.database, NAME, email)
    level = wanted.level or DEFAULT_LEVEL
    if before is not None:
        if before.consent is not None and wanted.level is None:
            level = cast("Level", before.consent.level)
        dialog.renewing(before)
    request, code = await dialog.code(lambda back: begin_consent(app, back, level, email, wanted.beside))
    async with httpx2.AsyncClient(timeout=TIMEOUT_S) as http:
        grant = await GoogleOAuth(http, app).exchange(request, code)
        address = normalised_address(await address_of(http, gmail_url, grant.access_token))
    if email is not None and not same_mailbox(email, address):
        raise GoogleConsentRefused(f"the consent is for {address}, not for {email}; start again and choose that one")
    if before is None and (found := await account_of(by.database, NAME, address)) is not None:
        if wanted.level is None:
            _refuse_less(found, grant, level)
        dialog.renewing(found)
    account = await connect(by, vault, grant, address, app.client_id)
    return ConnectedAccount(account, _warnings(account, grant, level, wanted.beside))


def _refuse_less(account: AccountView, grant: Grant, level: Level) -> None:
    """Refuse a narrower consent for an account that was only identified on Google's page."""
    consent = account.consent
    if consent is not None and is_lower(granted_level(grant.scopes), consent.level):
        command = connect_command(account.provider, account.email)
        raise GoogleConsentRefused(
            f"{account.email} is already connected with level {consent.level}, and this consent allows less; "
            f"run `{command}` to renew it as it is, or with `--level {level}` to narrow it"
        )


def _warnings(account: AccountView, grant: Grant, level: Level, beside: Sequence[str]) -> list[str]:
    consented, found = Consented(account.email, grant.scopes), list[str]()
    if missing := missing_scopes(level, grant.scopes):
        found.append(needs_more("what was requested", missing, consented, level))
    if lacking := [scope for scope in beside if scope not in covered(grant.scopes)]:
        found.append(needs_more("pulling gmail.pubsub_subscription", lacking, consented))
    if account.consent and account.consent.dies_at:
        found.append(
            f"Google ends this consent on {account.consent.dies_at:%Y-%m-%d %H:%M} UTC, because the app is in "
            '"Testing"; publish it in the Google Cloud console (Audience, Publish app) and connect again.'
        )
    return found


async def connect(by: Caller, vault: Vault, grant: Grant, email: str, client_id: str) -> AccountView:
    """Store what Google granted, for the mailbox's existing account or a new one.

    Refuse a consent that does not even allow reading.
    """
    now = by.clock()
    level: Level | None = granted_level(grant.scopes)
    if grant.refresh_token is None:
        raise GoogleConsentRefused(
            "Google gave no refresh token; remove Postroom at myaccount.google.com and start again"
        )
    if level is None:
        raise GoogleConsentRefused("reading was not granted; start again and leave every box on Google's page ticked")
    dies_at = None if grant.dies_in is None else now + grant.dies_in
    consent = Consent(client_id, level, grant.scopes, now, dies_at=dies_at)
    book = AccountBook(by.database, lambda: vault, by.clock)
    return await book.connect(NAME, email, {REFRESH_TOKEN: grant.refresh_token}, by.signature, consent=consent)


@dataclass(frozen=True, slots=True)
class RemovedAccount:
    """The account, and whether its consent was also revoked at the provider."""

    account: AccountView
    consent_ended: bool


def _removed_row(removed: RemovedAccount) -> Mapping[str, object]:
    return account_row(removed.account)


def what_remains(removed: RemovedAccount) -> Sequence[str]:
    """Return the access that the user has to end by hand, if the provider could not be reached."""
    return () if removed.consent_ended else (provider_named(removed.account.provider).end_by_hand,)


@CONNECTORS.operation(ADMINISTER, command("account remove {account}", row=_removed_row, line=LINE, notes=what_remains))
async def remove_account(by: Caller, settings: Settings, vault: Vault, /, account: AccountName) -> RemovedAccount:
    """Remove an account: revoke its consent, wipe its secrets; its mail and history stay. Safe to repeat."""
    import httpx2

    found = await find_account(by.database, account)
    async with httpx2.AsyncClient(timeout=TIMEOUT_S) as http:
        end = partial(provider_named(found.provider).end_consent, settings, http)
        ended = await remove(by, vault, end, found)
    return RemovedAccount(await by.run(accounts.load_account(found.id)), ended)


async def remove(by: Caller, vault: Vault, end_consent: Callable[[str], Awaitable[bool]], account: AccountView) -> bool:
    """Wipe the account's secrets, then end its consent at the provider. Return False if only the latter failed."""
    now = by.clock()
    sealed = (await by.run(accounts.account_with_secret(account.id))).sealed
    try:
        secret = None if sealed is None else vault.open(sealed, account.id, REFRESH_TOKEN)
    except VaultError:
        secret = None
    await forbid_and_wait(by.database, accounts.remove_account(account.id, by.signature, now))
    if sealed is None:
        return True
    return secret is not None and await end_consent(secret)


@CONNECTORS.operation(OWN_AGAIN, flow("/connectors/new/{provider}/connect"))
async def connect_with_fields(
    by: Caller, settings: Settings, /, name: str, email: str, given: Mapping[str, str]
) -> ConnectedAccount:
    """Connect a mailbox of a provider that needs an address and a few fields, once they opened it. Safe to repeat."""
    await prepare(by.database)
    provider, address = provider_named(name), normalised_address(email)
    for field in provider.fields:
        if not given.get(field.name):
            raise BadInput(field.name, "is empty", f"give the {field.label.lower()}")
    words = await provider.sign_in(settings, address, given)
    book = AccountBook(by.database, lambda: vault_of(settings), by.clock)
    secrets = {field.name: given[field.name] for field in provider.fields}
    return ConnectedAccount(await book.connect(name, address, secrets, by.signature), words)
