"""Consents that a page asks for: begun by one form, answered by a later one, and remembered in between.

They are in the memory of this process for ten minutes. The answer comes back by hand: Google's page sends the browser
to an address where nothing listens, which works wherever that browser is, and the person pastes it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from postroom.core.errors import BadInput, SettingsError, VaultError
from postroom.mailboxes.gmail.from_settings import google_app, scopes_beside
from postroom.mailboxes.gmail.oauth import begin_consent
from postroom.mailboxes.gmail.scopes import DEFAULT_LEVEL, Level
from postroom.mailboxes.oauth.consent import NOWHERE, ConsentRequest, answer_in
from postroom.operations.accounts.connecting import Begin, ConnectedAccount, WantedConsent, add_gmail
from postroom.operations.caller import Caller
from postroom.operations.installation.vault import vault_of
from postroom.settings.reading import Settings
from postroom.store.accounts.accounts import AccountView
from postroom.store.engine.database import Database
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import Clock, wall_clock

KEPT_FOR = timedelta(minutes=10)
MOST_PENDING = 20


@dataclass(frozen=True, slots=True)
class PendingConsent:
    """A consent that was asked for and not answered yet."""

    request: ConsentRequest
    wanted: WantedConsent
    until: datetime


class PendingConsents:
    def __init__(self, database: Database, settings: Settings, clock: Clock = wall_clock) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._pending: dict[str, PendingConsent] = {}

    @property
    def is_possible(self) -> bool:
        """Whether the settings have an app to ask with."""
        google = self._settings.google
        return google.client_id is not None and google.client_secret is not None

    def of(self, person: str) -> PendingConsent | None:
        """Return what this person has begun, unless it is too long ago."""
        found = self._pending.get(person)
        return found if found is not None and self._clock() < found.until else None

    def begin(self, person: str, email: str | None, level: Level | None) -> PendingConsent:
        """Create a request for consent; one that the person began earlier is forgotten."""
        wanted = WantedConsent(email, level, scopes_beside(self._settings))
        try:
            request = begin_consent(google_app(self._settings), NOWHERE, level or DEFAULT_LEVEL, email, wanted.beside)
        except SettingsError as error:
            raise BadInput("google", "the settings have no app", str(error)) from error
        now = self._clock()
        self._pending = {key: each for key, each in self._pending.items() if now < each.until and key != person}
        while len(self._pending) >= MOST_PENDING:
            del self._pending[next(iter(self._pending))]
        self._pending[person] = PendingConsent(request, wanted, now + KEPT_FOR)
        return self._pending[person]

    def forget(self, person: str) -> None:
        self._pending.pop(person, None)

    async def finish(self, person: str, pasted: str, signed: Signature) -> ConnectedAccount:
        """Connect the mailbox with the pasted answer."""
        found = self.of(person)
        if found is None:
            raise BadInput("answer", "belongs to no request of the last ten minutes", "begin again with step 1")
        try:
            connected = await add_gmail(
                Caller(self._database, signed, self._clock),
                vault_of(self._settings),
                google_app(self._settings),
                self._settings.gmail.base_url,
                found.wanted,
                _Pasted(found.request, pasted),
            )
        except VaultError as error:
            raise BadInput("vault", "cannot seal the consent", str(error)) from error
        self.forget(person)
        return connected


class _Pasted:
    """The dialog of a request that was begun earlier and is answered now."""

    def __init__(self, request: ConsentRequest, pasted: str) -> None:
        self._request = request
        self._pasted = pasted

    async def code(self, begin: Begin) -> tuple[ConsentRequest, str]:
        return self._request, answer_in(self._request, self._pasted)

    def renewing(self, account: AccountView) -> None:
        """The page has said so before."""
