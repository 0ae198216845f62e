"""Checks of `postroom doctor` for accounts: the Google app, the keys, the consents, the connectors."""

import re
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_never
from urllib.parse import urlsplit

from postroom.core.actions.action import DecidedType, Operation
from postroom.core.actions.steps import steps_of
from postroom.core.errors import VaultError
from postroom.core.heartbeat import liveness
from postroom.core.hosts import LOCAL_NAMES, bare_name
from postroom.core.mail.account_repair import (
    PUBLISH,
    act_command,
    connect_command,
    dies_soon,
    lost_access,
    reactivate_command,
    repair_in,
    resume_command,
    retry_command,
)
from postroom.core.mail.accounts import address_at
from postroom.core.mail.providers import PROVIDERS
from postroom.core.rules.rule import Rule
from postroom.mailboxes.gmail.scopes import LEVELS, Level, missing_scopes
from postroom.operations.installation.checks import Check, passes_if
from postroom.settings.reading import Settings
from postroom.store.accounts.accounts import AccountView
from postroom.store.accounts.secret_keys import KeyUse
from postroom.store.intake.connectors import ConnectorView
from postroom.vault.sealing import Vault

HOW_TO = "docs/how-to/connect-gmail.md"
_CLIENT_ID = re.compile(r"[\w-]+\.apps\.googleusercontent\.com", re.ASCII)
_CLIENT_SECRET = re.compile(r"[!-~]{16,256}")


@dataclass(frozen=True, slots=True)
class Known:
    """The accounts in the database, what is connected with them, and the enabled rules."""

    accounts: Sequence[AccountView]
    rules: Sequence[Rule]
    connectors: Mapping[str, ConnectorView]
    keys: Sequence[KeyUse]
    client_id: str | None = None

    @property
    def in_use(self) -> list[AccountView]:
        return [account for account in self.accounts if account.state != "removed"]


def google_checks(settings: Settings) -> list[Check]:
    """Run the checks that need only the settings."""
    google, gmail = settings.google, settings.gmail
    addresses = {
        "gmail.base_url": gmail.base_url,
        "gmail.pubsub_url": gmail.pubsub_url,
        "gmail.push_keys_url": gmail.push_keys_url,
        "google.auth_url": google.auth_url,
        "google.token_url": google.token_url,
        "google.revoke_url": google.revoke_url,
        "microsoft.base_url": settings.microsoft.base_url,
    }
    secret = None if google.client_secret is None else google.client_secret.get_secret_value()
    is_google = not _is_loopback(google.token_url)
    found = [google_app(google.client_id, secret, is_google), encryption_check(addresses)]
    return [*found, redirect()] if google.client_id is not None else found


def google_app(client_id: str | None, secret: str | None, is_google: bool) -> Check:
    """Check that id and secret are both set or both missing, and not swapped. Reveal nothing of the secret."""
    name = "google app"
    if client_id is None and secret is None:
        return Check(name, "ok", "not set; needed only for Gmail mailboxes")
    if client_id is None or secret is None:
        missing = "google.client_id" if client_id is None else "google.client_secret"
        return Check(name, "fail", f"{missing} is not set", f"set both, as {HOW_TO} shows")
    remedy = f"copy it again from the Google Cloud console (Clients), as {HOW_TO} shows"
    if is_google and not _CLIENT_ID.fullmatch(client_id):
        return Check(name, "fail", "google.client_id does not end in .apps.googleusercontent.com", remedy)
    if is_google and (not _CLIENT_SECRET.fullmatch(secret) or _CLIENT_ID.fullmatch(secret)):
        return Check(name, "fail", "google.client_secret does not look like one from Google", remedy)
    return Check(name, "ok", "client id and secret are set")


def encryption_check(addresses: Mapping[str, str]) -> Check:
    """Check that addresses which carry tokens and mail use https, unless they are on this machine."""
    plain = [key for key, value in addresses.items() if value.startswith("http://") and not _is_loopback(value)]
    found = f"unencrypted: {', '.join(plain)}" if plain else "encrypted, or on this machine"
    remedy = "use https:// there: tokens and mail can be read on the way"
    return passes_if("addresses", not plain, found, remedy)


def redirect() -> Check:
    """Check that Google can send the browser back to a page on this machine, on any free port."""
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return Check("redirect", "ok", "can listen on 127.0.0.1")
    except OSError as error:
        remedy = "connect accounts with `postroom account add gmail --no-browser`, or allow this user to open ports"
        return Check("redirect", "warn", f"cannot listen on 127.0.0.1 ({error.strerror})", remedy)


def key_check(vault: Vault, uses: Sequence[KeyUse]) -> Check:
    """Check that every key in use is available. Keys are named by their ids, which reveal nothing."""
    name, needed = "secret keys", {use.id for use in uses if use.secrets}
    try:
        here = {key.id for key in vault.known_keys()}
    except VaultError as error:
        problem, _, remedy = str(error).partition("; ")
        return Check(name, "fail", problem, remedy or f"restore {vault.file} from a backup")
    if missing := sorted(needed - here):
        remedy = (
            f"copy {vault.file} from the machine that has it, restore it from a backup, or set secret_key; "
            "if it is lost, connect the accounts again"
        )
        return Check(name, "fail", f"the key {', '.join(missing)} is in use but missing", remedy)
    if not here:
        return Check(name, "ok", "none yet; the first is created with the first account")
    return Check(name, "ok", f"{len(here)} available, {len(needed)} in use; stored in {vault.file}")


def account_checks(known: Known, now: datetime) -> list[Check]:
    """Check each account: whether it is in use, when its consent ends, and whether that is enough for the rules."""
    found: list[Check] = []
    for account in known.in_use:
        found += [_state_of(account, known.client_id, now), *_acting_of(account)]
        if account.consent is not None:
            found += _levels_of(account, account.consent.scopes, known.rules)
    return found


def _state_of(account: AccountView, client_id: str | None, now: datetime) -> Check:
    name, email, consent = "account", account.email, account.consent
    level = None if consent is None else consent.level
    again = f"run `{reactivate_command('needs_consent', email, level, account.provider)}`"
    why = f": {account.state_reason}" if account.state_reason else ""
    if (mending := repair_in(account.state_reason, email)) and account.state == "needs_consent":
        remedy = f"{mending.remedy}, then run `{resume_command(email)}`"
        return Check(name, "fail", f"{email}: {mending.problem}", remedy)
    if account.state == "needs_consent":
        enter = " to enter it again" if account.sign_in == "password" else ""
        return Check(name, "fail", f"{lost_access(email, account.sign_in)}{why}", f"{again}{enter}")
    if account.state == "paused":
        return Check(name, "warn", f"{email}: paused{why}", f"run `{resume_command(email)}` to use it again")
    if consent is not None and consent.client_id != client_id:
        problem = f"{email}: its consent is for another app than google.client_id"
        return Check(
            name, "fail", problem, f"set google.client_id and google.client_secret to the old values, or {again}"
        )
    if consent is not None and consent.dies_at is not None and dies_soon(consent.dies_at, now):
        ends = f"{email}: its consent ends on {consent.dies_at:%Y-%m-%d %H:%M} UTC, because the app is in testing"
        return Check(name, "warn", ends, f"{PUBLISH}, then {again}")
    return Check(name, "ok", f"{email}: in use" if level is None else f"{email}: in use, level {level}")


def _acting_of(account: AccountView) -> list[Check]:
    """Tell that an account does not act yet."""
    if account.acts_from is not None or account.state != "active":
        return []
    found = f"{account.email}: decided in shadow, nothing is changed in the mailbox"
    return [Check("acting", "warn", found, f"run `{act_command(account.email)}` to act on new mail")]


def level_needed(action_type: DecidedType, parameters: Mapping[str, Any]) -> Level:
    """Return the lowest level of consent that this action needs."""
    levels = {_level_of(step.spec.operation) for step in steps_of(action_type, parameters)}
    found: list[Level] = [level for level in LEVELS if level == "read" or level in levels]
    return found[-1]


def _level_of(operation: Operation) -> Level:
    match operation:
        case "send":
            return "send"
        case "delete":
            return "full"
        case "relabel" | "snooze":
            return "organise"
        case _:
            assert_never(operation)


def _levels_of(account: AccountView, scopes: Collection[str], rules: Sequence[Rule]) -> list[Check]:
    """Report the highest level that rules lack; consent to that one is enough for all of them."""
    lacking: dict[Level, list[str]] = {}
    for rule in rules:
        level = level_needed(rule.action_type, rule.parameters)
        concerned = rule.scope != "account" or rule.scope_ref == str(account.id)
        if not rule.shadow and concerned and missing_scopes(level, scopes):
            lacking.setdefault(level, []).append(rule.name)
    if not lacking:
        return []
    highest = max(lacking, key=tuple(LEVELS).index)
    names = [f"“{name}”" for level in lacking for name in lacking[level]]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    found = f"{account.email}: too low for the rules {', '.join(names[:3])}{more}"
    remedy = f"run `{connect_command(account.provider, account.email, highest)}`, or disable those rules"
    return [Check("level", "fail", found, remedy)]


def connector_checks(known: Known, now: datetime, contacts_stale_s: float) -> list[Check]:
    """Check each endpoint that should be watched, by its last report."""
    resting = {account.endpoint_identity for account in known.accounts if account.state != "active"}
    silent = {account.endpoint_identity for account in known.in_use} - known.connectors.keys() - resting
    found = [
        Check("connector", "warn", f"{endpoint}: has never reported", "start Postroom, or its connector")
        for endpoint in sorted(silent)
    ]
    for endpoint, connector in sorted(known.connectors.items()):
        if endpoint not in resting:
            found += [*_connector(connector, now), *_old_contacts(connector, now, contacts_stale_s)]
    return found


def _connector(connector: ConnectorView, now: datetime) -> list[Check]:
    name, who = "connector", connector.endpoint_identity
    alive = liveness(connector.last_heartbeat_at, now)
    heard = f"last report {connector.last_heartbeat_at:%Y-%m-%d %H:%M:%S} UTC from {connector.instance_id}"
    if alive != "online":
        first = Check(name, "warn", f"{who}: {alive}, {heard}", "start Postroom, or its connector, and read its log")
    elif connector.state != "healthy":
        problem, _, remedy = (connector.error or "").partition("; ")
        said = f": {problem}" if problem else ""
        first = Check(name, "warn", f"{who}: {connector.state}{said}", remedy or "read its log")
    else:
        first = Check(name, "ok", f"{who}: online, {heard}")
    return [first, *_left_behind(connector)]


def _old_contacts(connector: ConnectorView, now: datetime, stale_s: float) -> list[Check]:
    """Warn of contacts that are too old to be used: known senders are then treated as strangers."""
    made = connector.contacts_generated_at
    if made is None or now - made <= timedelta(seconds=stale_s):
        return []
    found_text = f"{connector.endpoint_identity}: its contacts date from {made:%Y-%m-%d %H:%M} UTC, too old to be used"
    return [Check("contacts", "warn", found_text, "read its log: it cannot fetch them from the switchboard")]


def _left_behind(connector: ConnectorView) -> list[Check]:
    """Report messages that were refused, which a person has to look at, or set aside, which arrive late."""
    who, found = connector.endpoint_identity, list[Check]()
    remedy = "they are in its stream's companion, whose name ends in :refused, with the reason"
    if connector.connector_type in PROVIDERS:
        again = retry_command(address_at(who))
        remedy = f"`postroom connector refused` lists them with the reason; `{again}` tries them again"
    if refused := connector.counters.get("refused", 0):
        found.append(Check("refused", "warn", f"{who}: {refused:,} messages were refused", remedy))
    if aside := connector.counters.get("set_aside", 0):
        found_text = (
            f"{who}: {aside:,} messages are set aside because the mailbox does not return them; they are tried again"
        )
        found.append(Check("set aside", "warn", found_text, remedy))
    return found


def _is_loopback(address: str) -> bool:
    try:
        return bare_name(urlsplit(address).hostname or "") in LOCAL_NAMES
    except ValueError:
        return False
