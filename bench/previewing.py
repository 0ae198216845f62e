"""The process that previews mail in a folder: `python -m bench.previewing ours|command COUNT`.

Messages are those of bench/tiering.py, about 6 KB each, in one mbox; the 100 rules are the starter rules and the
first of bench/ruling.py.
`ours` times reading and deciding, as the command does it, without its start; `command` times the whole command.
"""

import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from postroom.core.actions.safety import Policy
from postroom.core.mail.files import mail_in
from postroom.core.mail.ingestion import DEFAULT_POLICY
from postroom.core.rules.rule import Rule
from postroom.core.rules.starter import drafts_of, starters
from postroom.operations.preview.arrivals import IncomingMessage, read_history
from postroom.operations.preview.preview import Previewer, PreviewRules
from postroom.operations.preview.preview_mail import recipient_of
from postroom.operations.preview.preview_processes import preview_all
from postroom.operations.preview.preview_rules import rules_of

from .order import Outcome, answer
from .ruling import rules
from .tiering import USER, messages

RULES = 100


def main(side: str, count: int) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.mbox"
        _write(path, count)
        return (_ours if side == "ours" else _command)(path)


def _ours(path: Path) -> Outcome:
    mail = partial(map, IncomingMessage)
    chosen, now = PreviewRules(_rules(), Policy()), datetime.now(UTC)
    started = time.monotonic()
    history = read_history(mail(mail_in(path)), frozenset({USER}))
    previewer = Previewer(chosen, recipient_of(history, [USER], None, DEFAULT_POLICY), now)
    preview_all(mail(mail_in(path)), previewer, history.senders.total(), lambda _number: None)
    rows = previewer.finish()
    seconds = time.monotonic() - started
    return Outcome(seconds=seconds, handled=sum(bool(row.rules) for row in rows), finished=len(rows))


def _rules() -> list[Rule]:
    starter_rules = rules_of(drafts_of(starters()))
    return [*rules()[: RULES - len(starter_rules)], *starter_rules]


def _command(path: Path) -> Outcome:
    one = path.with_suffix(".one")
    _write(one, 1)
    _preview(one)  # as after an installation: what was never run, or changed since, is compiled
    started = time.monotonic()
    done = _preview(path)
    seconds = time.monotonic() - started
    return Outcome(seconds=seconds, finished=int(done.split()[1].replace(",", "")))


def _preview(path: Path) -> str:
    """The command's output. It may write bytecode, as any installation has it, whatever this process may."""
    program = Path(sys.executable).parent / "postroom"
    command = [program, "preview", path, "--user", USER, "--starter", "all", "--data-dir", path.parent / "none"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(command, capture_output=True, check=True, text=True, env=environment).stdout


def _write(path: Path, count: int) -> None:
    """Each message once, and again with another id."""
    given = messages()
    with path.open("wb") as file:
        for number in range(count):
            raw = given[number % len(given)][0].replace(b"\r\n", b"\n").replace(b"\nFrom ", b"\n>From ")
            file.write(b"From bench\nX-Number: %d\n%s\n\n" % (number, raw))


if __name__ == "__main__":
    answer(main(sys.argv[1], int(sys.argv[2])).to_json())
