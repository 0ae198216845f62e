"""Turns lines and totals into HTML. Autoescape is always on; texts from mail pass `shown` besides."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from postroom import __version__
from postroom.dashboard import display
from postroom.dashboard.assets import Asset
from postroom.dashboard.feed import AccountLine, ControlState, MessageLine, Totals

TEMPLATES = Path(__file__).parent / "templates"
DECIDERS = {"deterministic": "rule", "model": "model", "llm": "model", "user": "you"}
ACTION_WORDS = {"completed": "done", "executing": "under way", "awaiting_approval": "waits for your yes"}
ACTION_MOODS = {
    "completed": "good",
    "failed": "bad",
    "rejected": "bad",
    "expired": "bad",
    "executing": "busy",
    "awaiting_approval": "ask",
}
ACCOUNT_WORDS = {"active": "in use", "needs_consent": "needs your consent"}
ACCOUNT_MOODS = {"active": "good", "paused": "ask", "needs_consent": "bad"}
CONNECTOR_WORDS = {"never": "no connector yet"}
CONNECTOR_MOODS = {"online": "good", "stale": "ask", "offline": "bad"}
FILTERS = ("shown", "words", "verdict", "iso", "clock", "grouped")
ERRORS = {
    403: ("Not allowed", "This has to come from Postroom's own page."),
    404: ("Nothing here", "There is no page at this address."),
    405: ("Not possible", "This address does not take that kind of request."),
    500: ("Something went wrong", "Postroom could not make this page. The cause is in its log."),
    503: ("Not available right now", "Postroom cannot read its data at the moment. Your mail is safe; try again soon."),
}
UNKNOWN_ERROR = ("Not possible", "Postroom could not answer this request.")


class Pages:
    def __init__(self, assets: Mapping[str, Asset], account: str, started_at: datetime) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update({name: getattr(display, name) for name in FILTERS})
        known_everywhere: dict[str, object] = {
            "asset": {name: asset.address for name, asset in assets.items()},
            "account": account,
            "started_at": started_at,
            "version": __version__,
            "deciders": DECIDERS,
            "action_words": ACTION_WORDS,
            "action_moods": ACTION_MOODS,
            "account_words": ACCOUNT_WORDS,
            "account_moods": ACCOUNT_MOODS,
            "connector_words": CONNECTOR_WORDS,
            "connector_moods": CONNECTOR_MOODS,
        }
        self._environment.globals.update(cast(Any, known_everywhere))

    def board(
        self, lines: list[MessageLine], totals: Totals, accounts: list[AccountLine], standing: ControlState
    ) -> str:
        """Everything on the page that changes."""
        template = self._environment.get_template("board.html")
        waiting = sum(totals.waiting.values())
        return template.render(lines=lines, totals=totals, accounts=accounts, standing=standing, waiting=waiting)

    def overview(self, board: str) -> str:
        """The whole page around a board that `board` has rendered."""
        return self._environment.get_template("overview.html").render(board=board)

    def error(self, status: int) -> str:
        """A page that says what happened in the reader's words, and nothing of the inside."""
        title, sentence = ERRORS.get(status, UNKNOWN_ERROR)
        return self._environment.get_template("error.html").render(title=title, sentence=sentence)
