"""A person works in the mailbox while automation does, at every moment: nothing protected is touched, nothing snoozed
is lost, and no label that was deleted comes back."""

import asyncio
import itertools
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.patience import PATIENCE_S
from support.product import OWNER, TOKEN
from support.scale import scale
from support.shared_mailbox import LABEL, PRIVATE, SNOOZE, SharedMailbox, open_shared_mailbox

Move = tuple[str, int, int, bool]
"""What is done, to which message, how much of it, and whether in the middle of automation's next job."""

BY_HAND = (
    *("archive", "inbox", "trash", "spam", "star", "delete", "label off", "snooze off", "private", "relabel"),
    *("delete label", "rename label", "delete snooze label"),
)
BY_AUTOMATION = (
    *(
        "rule",
        "agent archive",
        "agent trash",
        "agent snooze",
        "agent snooze",
        "agent snooze",
        "agent label",
        "agent new label",
    ),
    *("approve", "reject", "undo"),
)
MOVES = (*BY_HAND, *BY_AUTOMATION, "work", "work", "work", "time", "told", "protect label", "protect sender")
moves = st.lists(
    st.tuples(st.sampled_from(MOVES), st.integers(0, 1), st.integers(1, 40), st.booleans()), min_size=3, max_size=14
)


async def make(shared: SharedMailbox, move: Move) -> None:
    what, number, amount, soon = move
    message = shared.messages[number]
    if what in BY_HAND:
        shared.by_hand(partial(act_by_hand, shared, what, number), soon=soon)
        return
    match what:
        case "rule":
            await shared.decide(message)
        case "agent snooze":
            await shared.propose(message, "snooze", amount=amount, units="hours")
        case "agent label":
            await shared.propose(message, "apply_label", label=LABEL)
        case "agent new label":
            await shared.propose(message, "apply_label", label=f"New {amount % 2}")
        case "agent archive" | "agent trash":
            await shared.propose(message, what.removeprefix("agent "))
        case "approve" | "reject":
            await shared.answer(what == "approve")
        case "undo":
            await shared.undo()
        case "work":
            await shared.work(amount % 3 + 1)
        case "time":
            shared.clock.forward(amount * 1800)
        case "told":
            await shared.tell()
        case "protect label":
            await shared.protect("label", PRIVATE)
        case _:
            await shared.protect("sender", message.sender)


def act_by_hand(shared: SharedMailbox, what: str, number: int) -> None:
    message, user = shared.messages[number], shared.relabel
    acts: dict[str, Callable[[], None]] = {
        "archive": lambda: user(message, remove=["INBOX"]),
        "inbox": lambda: user(message, add=["INBOX"]),
        "trash": lambda: user(message, add=["TRASH"]),
        "spam": lambda: user(message, add=["SPAM"]),
        "star": lambda: user(message, add=["STARRED"]),
        "delete": lambda: shared.delete(message),
        "label off": lambda: user(message, remove=[shared.label_id(LABEL)]),
        "snooze off": lambda: user(message, remove=[shared.label_id(SNOOZE)]),
        "private": lambda: user(message, add=[shared.label_id(PRIVATE)]),
        "relabel": lambda: user(message, add=[shared.label_id(LABEL)]),
        "delete label": lambda: shared.delete_label(LABEL),
        "rename label": lambda: shared.rename_label(LABEL),
        "delete snooze label": lambda: shared.delete_label(SNOOZE),
    }
    acts[what]()


class Programs:
    """The emulator, and a database for each sequence, on one event loop."""

    def __init__(self, runner: asyncio.Runner, folder: Path, migrated: Path) -> None:
        self._runner = runner
        self._folder = folder
        self._migrated = migrated
        self._numbers = itertools.count()
        self._emulator = Emulator(Mailbox(OWNER, Random(1)), TOKEN)
        self._serving = running_emulator(self._emulator)
        self._http = httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S)
        self._address = runner.run(self._serving.__aenter__())

    def play(self, program: list[Move]) -> None:
        self._runner.run(self._play(program))

    async def _play(self, program: list[Move]) -> None:
        folder = self._folder / str(next(self._numbers))
        shared = await open_shared_mailbox(folder, self._migrated, self._emulator, self._address, self._http)
        try:
            for move in program:
                await make(shared, move)
                shared.check()
            await shared.settle()
            await shared.check_end()
        finally:
            await shared.database.close()

    def close(self) -> None:
        self._runner.run(self._http.aclose())
        self._runner.run(self._serving.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Generator[Programs]:
    with asyncio.Runner() as runner:
        programs = Programs(runner, tmp_path_factory.mktemp("shared"), migrated_sqlite)
        yield programs
        programs.close()


@settings(
    max_examples=scale(60, 2000),
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(moves)
def test_whatever_the_user_does_meanwhile_their_word_stands(programs: Programs, program: list[Any]) -> None:
    note(f"{program}")
    programs.play(program)


# What was found by the sequences, kept as it was found.
FOUND: dict[str, list[Move]] = {
    "its label is taken off while it sleeps": [
        ("agent snooze", 0, 3, False),
        ("work", 0, 1, False),
        ("snooze off", 0, 1, False),
    ],
    "a label is deleted between the rule's decision and its action": [
        ("rule", 0, 1, False),
        ("work", 0, 1, False),
        ("delete label", 0, 1, False),
        ("work", 0, 1, False),
    ],
    "one message is archived while another is snoozed": [
        ("archive", 0, 1, True),
        ("agent snooze", 1, 1, False),
        ("work", 0, 1, False),
    ],
    "it is archived just before it is snoozed, and the snooze is undone": [
        ("archive", 0, 1, True),
        ("agent snooze", 0, 1, False),
        ("work", 0, 1, False),
        ("undo", 0, 1, False),
    ],
    "a label is deleted in the middle of the action": [
        ("rule", 0, 1, False),
        ("work", 0, 1, False),
        ("delete label", 0, 1, True),
        ("work", 0, 1, False),
    ],
}


@pytest.mark.parametrize("name", FOUND)
def test_what_went_wrong_once(programs: Programs, name: str) -> None:
    programs.play(FOUND[name])
