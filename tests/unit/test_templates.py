"""Every template compiles: an error in one would be met only when somebody opens its page."""

from pathlib import Path

import pytest

from postroom.interfaces.dashboard.rendering import TEMPLATES, make_environment

NAMES = sorted(str(path.relative_to(TEMPLATES)) for path in Path(TEMPLATES).rglob("*.html"))


@pytest.mark.parametrize("name", NAMES)
def test_a_template_uses_only_filters_that_there_are(name: str) -> None:
    assert make_environment().get_template(name).name == name
