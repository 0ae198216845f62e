"""The connectors: each mailbox and each source of events, whether it works, what it brought, and what it left out."""

from collections.abc import Mapping

from postroom.interfaces.dashboard.charts import Part
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.tiers import tier_parts, tier_series, with_gaps
from postroom.interfaces.dashboard.visit import Visit
from postroom.interfaces.dashboard.windows import WINDOW_CHOICES, chosen_window
from postroom.operations.connectors.connector_cards import CHANNELS, list_connector_cards, load_connector
from postroom.operations.overview.volumes import recorded_spans
from postroom.words import connectors as words

WORDS: Mapping[str, object] = {
    "account_state": words.account_state,
    "account_moods": words.ACCOUNT_MOODS,
    "liveness_words": words.LIVENESS,
    "liveness_moods": words.LIVENESS_MOODS,
    "report_moods": words.REPORT_MOODS,
    "left_out_words": words.NOT_INGESTED,
    "left_out_moods": words.NOT_INGESTED_MOODS,
}


def pages(site: Site) -> list[DashboardPage]:
    return [ConnectorsPage(site), ConnectorPage(site)]


class ConnectorsPage(DashboardPage):
    """All connectors as cards, and the acts on one, which its own page offers too."""

    address, title, template = "/connectors", "Connectors", "connectors.html"
    channels = CHANNELS

    async def read(self, visit: Visit) -> Mapping[str, object]:
        return {"cards": await list_connector_cards(self._database, self._clock), **WORDS}


class ConnectorPage(DashboardPage):
    address, title, template = "/connectors/{type}/{identity:path}", "Connector", "connector.html"
    channels = CHANNELS

    async def read(self, visit: Visit) -> Mapping[str, object]:
        window = chosen_window(visit)
        place = visit.parameters["type"], visit.parameters["identity"]
        detail = await load_connector(self._database, self._parts.connector_limits, self._clock, *place, window)
        return {
            "detail": detail,
            "window": window,
            "windows": WINDOW_CHOICES,
            "parts": tier_parts(detail.volume),
            "series": with_gaps(
                tier_series(detail.volume.by_tier), await recorded_spans(self._database, detail.volume.window)
            ),
            "quota": [] if detail.quota is None else [Part("spent", detail.quota.units, "acc")],
            **WORDS,
        }
