"""Every template compiles: an error in one would be met only when somebody opens its page."""

from pathlib import Path

import pytest

from postroom.interfaces.dashboard.rendering import TEMPLATES, make_environment
from postroom_simulator.page import TEMPLATES as OF_THE_SIMULATOR

FOLDERS = (TEMPLATES, OF_THE_SIMULATOR)
FILES = [path for folder in FOLDERS for path in sorted(folder.rglob("*.html"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_template_uses_only_filters_that_there_are(path: Path) -> None:
    make_environment().from_string(path.read_text(encoding="utf-8"))
