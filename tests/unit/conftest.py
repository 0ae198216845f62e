"""What the tests of the command line share."""

import os
from pathlib import Path

import pytest

from support.shell import Shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """In a folder of its own, with no setting from outside."""
    for name in [name for name in os.environ if name.startswith("POSTROOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    # The logs have their own tests; here they must not stay on for the tests that follow.
    monkeypatch.setattr("postroom.telemetry.logs.configure_logging", lambda *_args, **_more: None)  # type: ignore[reportUnknownLambdaType]
    return Shell(tmp_path, capsys)
