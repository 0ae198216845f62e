"""Account verbs: what the user consented to, whether the account is in use, and its sealed secrets.

    connect_account ──► active ⇄ paused          (pause_account, resume_account)
                          │  ▲      │
             lose_consent │  │      │            jobs that meet a paused account, or one without consent, are parked;
           refuse_sign_in ▼  │      ▼            whatever makes it active again releases them
                     needs_consent ──► removed   (remove_account: secrets wiped, history kept)

A secret arrives sealed: nothing here, nor in the database, can open it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from postroom.core.audited_actions import AuditedAction
from postroom.core.errors import Conflict, NotFound
from postroom.core.lifecycle import ACCOUNT, AccountState
from postroom.core.mail.accounts import endpoint_of, parking_key, same_mailbox
from postroom.core.mail.providers import SignIn, facts_of
from postroom.core.mail.secret_fields import REFRESH_TOKEN
from postroom.core.mail.servers import MailServers
from postroom.core.views import Internal
from postroom.store.accounts.secret_keys import using_key
from postroom.store.actions.pauses import recalling
from postroom.store.backfill.backfill import canceling_all
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.filling import fill
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.jobs.job_builders import sync_job
from postroom.store.jobs.jobs import enqueue_many, unpark
from postroom.store.people.audit import Signature, auditing
from postroom.vault.sealing import Sealed

CHANNEL = "accounts"


@dataclass(frozen=True, slots=True)
class Consent:
    """The consent of the user. `refreshed_at` is when the provider last accepted it."""

    client_id: str
    level: str
    scopes: frozenset[str]
    granted_at: datetime
    refreshed_at: datetime | None = None
    dies_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AccountView:
    """An account with its consent, or its servers if it is reached over IMAP; one that was never connected, or was
    removed, has neither.
    """

    id: UUID
    provider: str
    endpoint_identity: str
    email: str
    state: AccountState
    state_reason: Internal[str | None]
    created_at: Internal[datetime]
    updated_at: Internal[datetime]
    consent: Internal[Consent | None]
    servers: Internal[MailServers | None] = None
    acts_from: Annotated[datetime | None, "Since when mail is acted on; null until its owner has said so."] = None

    @property
    def sign_in(self) -> SignIn:
        """What its owner renews if the mailbox can no longer be opened."""
        if self.servers is not None:
            return "password" if self.servers.sign_in == "password" else "consent"
        return facts_of(self.provider).sign_in


class AccountWithSecret(NamedTuple):
    """An account, and its sealed secret, if it has one."""

    account: AccountView
    sealed: Sealed | None


@dataclass(frozen=True, slots=True)
class GivenAccess:
    """Access to a mailbox: sealed secrets by field, and the consent or the servers that they belong to."""

    secrets: Mapping[str, Sealed]
    consent: Consent | None = None
    servers: MailServers | None = None


@transaction
def connect_account(
    id: UUID, provider: str, email: str, given: GivenAccess, signed: Signature, now: datetime
) -> Script[AccountView]:
    """Store the access to a mailbox, and resume its jobs. `id` is the account's, or that of a new one.

    A mailbox has one account, however its address is spelled: connecting it again renews all of that account's access,
    and a secret that is not given again is deleted. Connecting the same mailbox is serialised, so that two spellings of
    it are not both taken for new.
    """
    before = yield from _connecting(id, provider, endpoint_of(provider, email), email, now)
    if given.servers is not None:
        _refuse_second_account(id, given.servers, read_rows(AccountView, (yield sql("select_account_views"))))
    yield sql("delete_credentials", id)
    for key_id in sorted({each.key_id for each in given.secrets.values()}):
        yield from using_key(key_id, now)
    for field, sealed in sorted(given.secrets.items()):
        yield sql("upsert_credential", id, field, *sealed, now)
    after: dict[str, Any] = {"state": "active", "email": email}
    if given.consent is not None:
        after |= yield from _storing_consent(id, given.consent)
    if given.servers is not None:
        after |= yield from _storing_servers(id, given.servers)
    yield from _goes_on(id, now)
    yield from auditing(signed.under("account.connect", "account", str(id), before=_state(before), after=after), now)
    yield Notify(CHANNEL, str(id))
    return (yield from load_account.script(id))


def _storing_consent(id: UUID, consent: Consent) -> Script[dict[str, Any]]:
    yield fill("upsert_consent", consent, account_id=id)
    return {"level": consent.level, "scopes": sorted(consent.scopes)}


def _storing_servers(id: UUID, servers: MailServers) -> Script[dict[str, Any]]:
    yield fill("upsert_mail_servers", servers, account_id=id)
    return {"imap": servers.imap_host, "smtp": servers.smtp_host}


@transaction
def act_from(id: UUID, since: datetime, signed: Signature, now: datetime) -> Script[AccountView]:
    """Act on mail since this time. What was decided before stays as it is."""
    yield from _lock(id)
    before = yield from load_account.script(id)
    if before.acts_from != since:
        yield sql("set_acts_from", id, since, now)
        was, then = ({"acts_from": None if at is None else at.isoformat()} for at in (before.acts_from, since))
        yield from auditing(signed.under("account.act", "account", str(id), before=was, after=then), now)
        yield Notify(CHANNEL, str(id))
    return (yield from load_account.script(id))


@transaction
def pause_account(id: UUID, signed: Signature, now: datetime) -> Script[AccountView]:
    """Pause the account at the user's request: its jobs wait."""
    yield from recalling(str(id))
    return (yield from _change_state(id, "paused", signed.reason, "account.pause", signed, now))


@transaction
def resume_account(id: UUID, signed: Signature, now: datetime) -> Script[AccountView]:
    """Use the account again and resume its jobs. An account that lost its consent can be retried this way."""
    view = yield from _change_state(id, "active", None, "account.resume", signed, now)
    yield from _goes_on(id, now)
    return view


@transaction
def remove_account(id: UUID, signed: Signature, now: datetime) -> Script[AccountView]:
    """Delete the account's secrets for good; keep its mail and history. Waiting jobs end by themselves,
    and its backfills are canceled.
    """
    yield from recalling(str(id))
    view = yield from _change_state(id, "removed", signed.reason, "account.remove", signed, now)
    yield sql("delete_credentials", id)
    yield sql("delete_consent", id)
    yield sql("delete_mail_servers", id)
    yield from unpark.script(parking_key(id), now)
    yield from canceling_all(view.endpoint_identity, now, signed)
    return (yield from load_account.script(id))


@transaction
def lose_consent(id: UUID, granted_at: datetime, reason: str, signed: Signature, now: datetime) -> Script[bool]:
    """Record that the provider no longer accepts this consent. False if the account has a newer one."""
    state, _ = yield from _lock(id)
    view = yield from load_account.script(id)
    if view.consent is None or view.consent.granted_at != granted_at or state not in ("active", "paused"):
        return False
    yield from _change_state(id, "needs_consent", reason, "account.consent_lost", signed._replace(reason=reason), now)
    return True


@transaction
def refuse_sign_in(id: UUID, given_at: datetime, reason: str, signed: Signature, now: datetime) -> Script[bool]:
    """Record that the mail server does not accept the password of this time. False if the account has a newer one."""
    state, _ = yield from _lock(id)
    view = yield from load_account.script(id)
    if view.servers is None or view.servers.given_at != given_at or state != "active":
        return False
    yield from _change_state(
        id, "needs_consent", reason, "account.sign_in_refused", signed._replace(reason=reason), now
    )
    return True


@transaction
def note_refresh(id: UUID, granted_at: datetime, now: datetime) -> Script[bool]:
    """Record that the provider accepted this consent."""
    return bool((yield sql("note_refresh", id, granted_at, now)))


@query
def list_accounts() -> Script[list[AccountView]]:
    """Every account ever created, oldest first."""
    rows = yield sql("select_account_views")
    return read_rows(AccountView, rows)


@query
def accounts_with_address(email: str) -> Script[list[AccountView]]:
    """The accounts of an address in any spelling; there may be one per provider.

    Every account is compared: there are few, and spelling rules for addresses stay in one place, not in SQL too.
    """
    rows = yield sql("select_account_views")
    return [account for account in read_rows(AccountView, rows) if same_mailbox(account.email, email)]


@query
def load_account(id: UUID) -> Script[AccountView]:
    view = read_first(AccountView, (yield sql("select_account_view", id)))
    if view is None:
        raise NotFound(f"there is no account {id}; see `postroom account list`")
    return view


@query
def account_at(endpoint_identity: str) -> Script[AccountView | None]:
    return read_first(AccountView, (yield sql("select_account_at", endpoint_identity)))


@query
def account_with_secret(id: UUID, field: str = REFRESH_TOKEN) -> Script[AccountWithSecret]:
    """The account with its sealed secret of this field."""
    view = yield from load_account.script(id)
    rows = yield sql("select_credential", id, field)
    return AccountWithSecret(view, read_first(Sealed, rows))


def refuse_second_way(same_address: Sequence[AccountView], provider: str) -> None:
    """Raise Conflict if a mailbox, of which these are the accounts, is connected in another way than this."""
    others = [each for each in same_address if each.provider != provider and each.state != "removed"]
    # One without servers that has to have some was never connected, and works on nothing.
    if others and (others[0].servers is not None or not facts_of(others[0].provider).has_servers):
        way = facts_of(others[0].provider).way
        problem = f"{others[0].email} is already connected {way}, and two accounts would work on one mailbox"
        raise Conflict("email", problem, f"keep that one, or run `postroom account remove {others[0].id}` first")


def _refuse_second_account(id: UUID, servers: MailServers, all_accounts: Sequence[AccountView]) -> None:
    """Raise Conflict if one of these is the same mailbox under another address: each mail would be handled twice."""
    for each in all_accounts:
        if each.id != id and each.servers is not None and _mailbox(each.servers) == _mailbox(servers):
            raise second_account(each)


def second_account(first: AccountView) -> Conflict:
    """The refusal to connect the mailbox of this account a second time."""
    problem = f"signs in to the mailbox of {first.email}, and two accounts would work on one mailbox"
    return Conflict("user", problem, f"keep that one, or run `postroom account remove {first.id}` first")


def _mailbox(servers: MailServers) -> tuple[str, int, str]:
    return servers.imap_host.lower(), servers.imap_port, servers.user_name.lower()


def _connecting(
    id: UUID, provider: str, endpoint_identity: str, email: str, now: datetime
) -> Script[AccountState | None]:
    """Make the account active, or create it; return the state that it had."""
    yield sql("lock_connecting")
    same_address = yield from accounts_with_address.script(email)
    found = [each for each in same_address if each.provider == provider]
    refuse_second_way(same_address, provider)
    if found:
        if found[0].id != id:
            problem = f"{found[0].email} was connected in the meantime"
            raise Conflict("email", problem, "see `postroom account list`")
        yield from _move(id, "active", None, now)
        if found[0].consent is None and found[0].servers is None:
            # It is connected for the first time, or anew: its owner has not said yet from when on to act.
            yield sql("set_acts_from", id, None, now)
        return found[0].state
    if not (yield sql("insert_account", id, provider, endpoint_identity, email, None, now)):
        raise Conflict("email", f"{email} is being connected by someone else", "see `postroom account list`")
    return None


def _change_state(
    id: UUID, state: str, reason: str | None, action: AuditedAction, signed: Signature, now: datetime
) -> Script[Any]:
    """Change the state, with an entry in the audit log. Nothing changes if the state is the same."""
    before, why = yield from _lock(id)
    if before != state:
        yield from _move(id, state, reason, now)
        entry = signed.under(action, "account", str(id), before=_state(before, why), after=_state(state, reason))
        yield from auditing(entry, now)
        yield Notify(CHANNEL, str(id))
    return (yield from load_account.script(id))


def _move(id: UUID, state: str, reason: str | None, now: datetime) -> Script[None]:
    before, _ = yield from _lock(id)
    if before != state:
        ACCOUNT.check(before, state)
    yield sql("set_account_state", id, state, reason, now)


def _goes_on(id: UUID, now: datetime) -> Script[None]:
    """Resume what waited for the account, outgoing mail too, and enqueue a sync for mail that came meanwhile."""
    yield from unpark.script(parking_key(id), now)
    yield sql("hasten_mail_of_account", id, now)
    yield from enqueue_many.script([sync_job(id)], now)


def _lock(id: UUID) -> Script[Sequence[Any]]:
    rows = yield sql("lock_account", id)
    if not rows:
        raise NotFound(f"there is no account {id}; see `postroom account list`")
    return rows[0]


def _state(state: str | None, reason: str | None = None) -> dict[str, Any] | None:
    return None if state is None else {"state": state, "reason": reason}
