"""How much a test does: the counts of `make test`, and those of `make soak`."""

import os

SOAK = os.environ.get("POSTROOM_TEST_SCALE") == "soak"


def scale(test: int, soak: int) -> int:
    """A count for `make test`, and the big one for `make soak`."""
    return soak if SOAK else test
