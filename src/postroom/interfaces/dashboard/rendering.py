"""How pages are made from templates: on the dashboard, and as a file that loads nothing.

Autoescape is always on; text from mail also passes through `shown`.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from postroom.core.mail.providers import facts_of, ways_to_connect
from postroom.core.qr_code import qr_path
from postroom.interfaces.dashboard import display
from postroom.interfaces.dashboard.assets import STATIC
from postroom.interfaces.dashboard.charts import CHARTS

TEMPLATES = Path(__file__).parent / "templates"
FILTERS = (
    "brief",
    "shown",
    "several_lines",
    "words",
    "verdict",
    "iso",
    "clock",
    "grouped",
    "tier_kind",
    "span",
    "cents",
    "json_shown",
)
_HEADING = re.compile(r"^/\* \d+\. (.+?) -+ \*/\n", re.MULTILINE)


def make_environment(**known_everywhere: object) -> Environment:
    """Return the templates with their filters, their charts, and the values that every one of them knows."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({name: getattr(display, name) for name in FILTERS} | {"qr_path": qr_path})
    providers = {"facts_of": facts_of, "ways_to_connect": ways_to_connect}
    environment.globals.update(cast(Any, {**CHARTS, **providers, **known_everywhere}))
    return environment


@cache
def style_of(*headings: str) -> str:
    """Return the parts of the style sheet under these headings, for a page or a picture that carries its own style."""
    _, *found = _HEADING.split((STATIC / "postroom.css").read_text(encoding="utf-8"))
    parts = dict(zip(found[::2], found[1::2], strict=True))
    return "".join(parts[each] for each in headings)
