"""The connectors: each mailbox and each source of events, whether it works, what it brought, and what it left out."""

from collections.abc import AsyncIterator, Mapping

from starlette.routing import Route

from postroom.core.counted import counted
from postroom.core.moments import read_start
from postroom.interfaces.dashboard.charts import Part
from postroom.interfaces.dashboard.forms import Done, Form, form_route
from postroom.interfaces.dashboard.page import Page
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.tiers import tier_parts, tier_series
from postroom.interfaces.dashboard.visit import Visit
from postroom.interfaces.dashboard.windows import WINDOW_CHOICES, chosen_window
from postroom.operations.accounts.accounts import acting_words, pause_account, resume_account, sync_account
from postroom.operations.accounts.acting import begin_acting
from postroom.operations.connectors.connector_cards import CHANNELS, list_connector_cards, load_connector
from postroom.operations.connectors.not_ingested import retry_ingest
from postroom.operations.overview.channels import changes_on
from postroom.words import connectors as words

WORDS: Mapping[str, Mapping[str, str]] = {
    "account_words": words.ACCOUNT_STATES,
    "account_moods": words.ACCOUNT_MOODS,
    "liveness_words": words.LIVENESS,
    "liveness_moods": words.LIVENESS_MOODS,
    "report_moods": words.REPORT_MOODS,
    "left_out_words": words.NOT_INGESTED,
    "left_out_moods": words.NOT_INGESTED_MOODS,
}


def pages(site: Site) -> list[Page]:
    return [ConnectorsPage(site), ConnectorPage(site)]


class ConnectorsPage(Page):
    """All connectors as cards, and the acts on one, which its own page offers too."""

    address, title, template = "/connectors", "Connectors", "connectors.html"

    async def read(self, visit: Visit) -> Mapping[str, object]:
        return {"cards": await list_connector_cards(self._database, self._clock), **WORDS}

    def changes(self) -> AsyncIterator[None]:
        return changes_on(self._database, CHANNELS)

    def actions(self) -> list[Route]:
        return [
            form_route(self._site, "/connectors/sync", self._sync),
            form_route(self._site, "/connectors/pause", self._pause),
            form_route(self._site, "/connectors/resume", self._resume),
            form_route(self._site, "/connectors/act", self._act),
            form_route(self._site, "/connectors/retry", self._retry),
        ]

    async def _sync(self, form: Form) -> Done:
        asked = await sync_account(form.by, _account(form))
        return Done(f"{asked.account.email}: looking for new mail and changed labels now.")

    async def _pause(self, form: Form) -> Done:
        account = await pause_account(form.by, _account(form))
        return Done(f"{account.email} is paused: nothing is read from it or changed in it until you resume.")

    async def _resume(self, form: Form) -> Done:
        account = await resume_account(form.by, _account(form))
        return Done(f"{account.email} is in use again; what waited for it goes on.")

    async def _act(self, form: Form) -> Done:
        since = read_start("from", form.required("from", "say from when on"), self._clock())
        acting = await begin_acting(form.by, _account(form), since)
        count = acting.messages
        again = f" Deciding again about {counted(count, 'message')}." if count else ""
        return Done(f"Postroom acts on mail of {acting.account.email} {acting_words(acting.acts_from)}.{again}")

    async def _retry(self, form: Form) -> Done:
        retries = await retry_ingest(form.by, self._settings, _account(form), form.texts("message"))
        return Done(f"Fetching {counted(len(retries), 'message')} once more.")


class ConnectorPage(Page):
    address, title, template = "/connectors/{type}/{identity:path}", "Connector", "connector.html"

    async def read(self, visit: Visit) -> Mapping[str, object]:
        window = chosen_window(visit)
        place = visit.parameters["type"], visit.parameters["identity"]
        detail = await load_connector(self._database, self._parts.connector_limits, self._clock, *place, window)
        return {
            "detail": detail,
            "window": window,
            "windows": WINDOW_CHOICES,
            "parts": tier_parts(detail.volume),
            "series": tier_series(detail.volume),
            "quota": [] if detail.quota is None else [Part("spent", detail.quota.units, "acc")],
            **WORDS,
        }

    def changes(self) -> AsyncIterator[None]:
        return changes_on(self._database, CHANNELS)


def _account(form: Form) -> str:
    return form.required("account", "name the account")
