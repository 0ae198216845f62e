"""A process that serves may open more files than the usual limit of a shell allows."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource
from postroom.compose.tasks import allow_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
allow_open_files()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard", "then"), [(64, 512, 512), (512, 512, 512)])
def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be(soft: int, hard: int, then: int) -> None:
    command = [sys.executable, "-c", SCRIPT.format(soft=soft, hard=hard)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [str(then), str(hard)]
