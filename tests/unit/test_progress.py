"""Long work shows how far it is: at a terminal, after a while, on one line that goes when it ends."""

import io
import os
import pty
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from postroom.interfaces.cli import progress as module
from postroom.interfaces.cli.progress import progress, report
from support.patience import PATIENCE_S
from support.terminal import shown_by


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The other end of a terminal, with little to wait for."""
    ours, theirs = pty.openpty()
    monkeypatch.setattr(module, "QUIET_S", 0.01)
    monkeypatch.setattr(module, "EVERY_S", 0.01)
    with os.fdopen(theirs, "w") as stream:
        monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=stream))
        yield ours
    os.close(ours)


def test_work_without_a_count_shows_that_it_goes_on(terminal: int) -> None:
    with progress():
        assert "Working… 0 s" in shown_by(terminal, "Working", PATIENCE_S)
    assert shown_by(terminal, "\r            \r", PATIENCE_S)


def test_work_with_a_total_is_a_bar(terminal: int) -> None:
    with progress() as show:
        show("replaying", 1_200, 2_400)
        shown = shown_by(terminal, "2,400", PATIENCE_S)
        report("reading", 7)
        assert shown_by(terminal, "reading  7", PATIENCE_S)
    assert "replaying  [##########----------] 50 %  1,200 of 2,400" in shown


def test_work_that_forks_draws_only_when_it_reports(terminal: int) -> None:
    with progress(moves=False) as show:
        for number in range(10**6):
            show("messages", number)
            if number > 10 and module._shown[0]._width:
                break
        assert "messages  " in shown_by(terminal, "messages", PATIENCE_S)


def test_work_within_other_work_reports_on_the_same_line(terminal: int) -> None:
    with progress(), progress() as inner:
        inner("inside", 1)
        assert shown_by(terminal, "inside  1", PATIENCE_S)
    assert module._shown == []


@pytest.mark.parametrize("as_json", [True, False])
def test_programs_and_pipes_read_nothing(monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress(as_json) as show:
        show("messages", 1, 2)
        assert module._shown == []
    assert stream.getvalue() == ""


def test_short_work_shows_nothing(terminal: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUIET_S", 60.0)
    with progress() as show:
        show("messages", 1, 2)
    print("the end", file=module.sys.stderr, flush=True)  # pyright: ignore[reportPrivateImportUsage]
    assert shown_by(terminal, "the end", PATIENCE_S) == "the end\r\n"
