"""How pages are made from templates: on the dashboard, and as a file that loads nothing.

Autoescape is always on; text from mail also passes through `shown`.
"""

import re
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from postroom.core.mail.providers import facts_of, ways_to_connect
from postroom.core.qr_code import qr_path
from postroom.interfaces.dashboard import display
from postroom.interfaces.dashboard.assets import STATIC
from postroom.interfaces.dashboard.charts import CHARTS, lines, stacked_bars
from postroom.system.wall_clock import wall_clock

TEMPLATES = Path(__file__).parent / "templates"
FILTERS = (
    "brief",
    "shown",
    "several_lines",
    "words",
    "verdict",
    "iso",
    "grouped",
    "tier_kind",
    "span",
    "cents",
    "json_shown",
)
UTC = ZoneInfo("UTC")
_HEADING = re.compile(r"^/\* \d+\. (.+?) -+ \*/\n", re.MULTILINE)


def make_environment(**known_everywhere: object) -> Environment:
    """Return the templates with their filters, their charts, and the values that every one of them knows.

    Times are drawn in the `zone` that a template is given, and charts too.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({name: getattr(display, name) for name in FILTERS})
    environment.filters.update(cast(Any, {"qr_path": qr_path, "clock": _clock, "exact": _exact}))
    providers = {"facts_of": facts_of, "ways_to_connect": ways_to_connect}
    over_time = {"lines": _lines, "stacked_bars": _stacked_bars}
    usual = {"zone": UTC, "current_time": wall_clock}
    environment.globals.update(cast(Any, {**CHARTS, **over_time, **providers, **usual, **known_everywhere}))
    return environment


@pass_context
def _clock(context: Context, moment: datetime) -> str:
    return display.clock(moment, context["zone"], context["current_time"]())


@pass_context
def _exact(context: Context, moment: datetime) -> str:
    return display.exact(moment, context["zone"])


@pass_context
def _lines(context: Context, *given: Any, **named: Any) -> Markup:
    return lines(*given, **{"zone": context["zone"], **named})


@pass_context
def _stacked_bars(context: Context, *given: Any, **named: Any) -> Markup:
    return stacked_bars(*given, **{"zone": context["zone"], **named})


@cache
def style_of(*headings: str) -> str:
    """Return the parts of the style sheet under these headings, for a page or a picture that carries its own style."""
    _, *found = _HEADING.split((STATIC / "postroom.css").read_text(encoding="utf-8"))
    parts = dict(zip(found[::2], found[1::2], strict=True))
    return "".join(parts[each] for each in headings)
