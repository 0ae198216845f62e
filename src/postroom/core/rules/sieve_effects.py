"""The joint effect of the commands on one way through a Sieve script (RFC 5228, 3894, 5232).

A message is kept in the inbox unless a command cancels that: `fileinto` and `redirect` without `:copy`, and `discard`.
`discard` throws nothing away by itself: a message that some other command stores stays stored. Flags are collected as
the script runs, and each command that stores the message uses those collected so far.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from postroom.core.actions.action import ActionType
from postroom.core.actions.parameters import SHOWN_BY_GMAIL
from postroom.core.actions.steps import Step
from postroom.core.mail.label_names import looks_like
from postroom.core.rules.condition_spec import Inexpressible
from postroom.core.rules.sieve_syntax import Call, Tag
from postroom.core.rules.sieve_tests import Extensions

ARCHIVE, TRASH = "archive", frozenset({"trash", "deleted items", "deleted messages", "bin"})
INBOX = "inbox"
FLAG_ACTIONS: dict[str, ActionType] = {"\\seen": "mark_read", "\\flagged": "star"}
FLAG_COMMANDS = frozenset({"addflag", "setflag", "removeflag"})
# Commands without a counterpart and without influence on the others.
HARMLESS = frozenset({"vacation", "notify", "set"})
Flags = frozenset[str]
NO_FLAGS: Flags = frozenset()


class SieveOutcome(NamedTuple):
    """The actions for a message, and notes about differences."""

    steps: list[Step]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of the commands so far. `refused` is why they have no counterpart; `is_open` that such a command
    might also have changed the effect of others.
    """

    filed: tuple[tuple[str, Flags], ...] = ()
    kept: Flags | None = None
    cancelled: bool = False
    discarded: bool = False
    redirects: tuple[str, ...] = ()
    flags: Flags = NO_FLAGS
    refused: str | None = None
    is_open: bool = False
    lines: tuple[int, ...] = field(default=(), compare=False)

    @property
    def only_adds(self) -> bool:
        """Whether other commands only ever add to these effects, unless they keep, discard or flag the message."""
        is_plain = self.kept is None and not self.discarded and not self.flags and not self.is_open
        return is_plain and not any(flags or is_trash(folder) for folder, flags in self.filed)

    def after(self, call: Call, extensions: Extensions, line: int) -> "Effects":
        """The effects with those of one more command, in a branch that begins on this line."""
        lines = self.lines if line in self.lines else (*self.lines, line)
        try:
            return replace(self._after(call, extensions), lines=lines)
        except Inexpressible as error:
            why = self.refused or f"{call.name} on line {call.line}: {error}"
            return replace(self, refused=why, is_open=self.is_open or call.name not in HARMLESS, lines=lines)

    def _after(self, call: Call, extensions: Extensions) -> "Effects":
        match call.name:
            case "keep":
                given = _read_arguments(call, extensions, ("flags",), 0)
                return replace(self, kept=self.flags if given.flags is None else given.flags, cancelled=True)
            case "discard":
                _read_arguments(call, extensions, (), 0)
                return replace(self, discarded=True, cancelled=True)
            case "redirect":
                given = _read_arguments(call, extensions, ("copy",), 1)
                redirects = tuple(dict.fromkeys((*self.redirects, given.text)))
                return replace(self, redirects=redirects, cancelled=self.cancelled or not given.copies)
            case "fileinto":
                return self._file_into(_read_arguments(call, extensions, ("copy", "create", "flags"), 1), extensions)
            case "addflag" | "setflag" | "removeflag":
                return replace(self, flags=self._flags_after(call, extensions))
            case _:
                raise Inexpressible("it has no counterpart among actions")

    def _file_into(self, given: "_Given", extensions: Extensions) -> "Effects":
        extensions.check("fileinto", "fileinto")
        folder = folder_name(given.text)
        flags = self.flags if given.flags is None else given.flags
        cancelled = self.cancelled or not given.copies
        if is_inbox(folder):
            return replace(self, kept=flags, cancelled=cancelled)
        return replace(self, filed=tuple(dict.fromkeys((*self.filed, (folder, flags)))), cancelled=cancelled)

    def _flags_after(self, call: Call, extensions: Extensions) -> Flags:
        given = flags_of(_read_arguments(call, extensions, (), 1, lists=True).texts)
        extensions.check("imap4flags", call.name)
        match call.name:
            case "setflag":
                return given
            case "addflag":
                return self.flags | given
            case _:
                return self.flags - given

    def outcome(self) -> SieveOutcome:
        """The actions that do the same. Raises Inexpressible."""
        if self.refused is not None:
            raise Inexpressible(self.refused)
        in_inbox = self.kept is not None or not self.cancelled
        copies = [flags for _, flags in self.filed]
        copies += [] if self.kept is None else [self.kept]
        copies += [] if self.cancelled else [self.flags]
        if len(set(copies)) > 1:
            raise Inexpressible("it stores two copies with different flags, and here a message is one")
        steps, notes = self._placement(in_inbox)
        flags = copies[0] if copies else NO_FLAGS
        steps += [Step(action) for flag, action in FLAG_ACTIONS.items() if flag in flags]
        if unknown := sorted(flags - FLAG_ACTIONS.keys()):
            raise Inexpressible(f"the flag {unknown[0]} has no counterpart among actions")
        if self.redirects:
            to: Any = self.redirects[0] if len(self.redirects) == 1 else list(self.redirects)
            steps.append(Step("forward", {"to": to}))
        return SieveOutcome(steps, notes)

    def _placement(self, in_inbox: bool) -> tuple[list[Step], list[str]]:
        """Labels, and whether the message leaves the inbox."""
        folders = [folder for folder, _ in self.filed]
        if any(map(is_trash, folders)):
            if in_inbox or len(folders) > 1 or self.redirects:
                raise Inexpressible("it stores one copy in the trash and another elsewhere, and here a message is one")
            return [Step("trash")], []
        labels = [folder for folder in folders if not is_archive(folder)]
        if own := next((folder for folder in labels if looks_like(folder, SHOWN_BY_GMAIL)), None):
            raise Inexpressible(f"{own} is one of Gmail's own places, which takes no mail, and no label has its name")
        steps = [Step("apply_label", {"label": folder}) for folder in labels]
        notes = ["the folder is Gmail's archive"] if len(steps) < len(folders) else []
        if in_inbox:
            return steps, notes
        if folders:
            return [*steps, Step("archive")], notes
        if self.redirects:
            return [Step("archive")], ["Sieve would keep no copy; here it is archived"]
        return [Step("trash")], ["discarded mail goes to the trash"]


class _Given(NamedTuple):
    """The arguments of a command: its tags, and the texts beside them."""

    texts: list[str]
    copies: bool
    flags: Flags | None

    @property
    def text(self) -> str:
        return self.texts[0]


def _read_arguments(
    call: Call, extensions: Extensions, tags: tuple[str, ...], count: int, *, lists: bool = False
) -> _Given:
    texts: list[list[str]] = []
    copies, flags = False, None
    left = list(call.arguments)
    while left:
        match left.pop(0):
            case Tag("copy") if "copy" in tags:
                extensions.check("copy", ":copy")
                copies = True
            case Tag("create") if "create" in tags:
                extensions.check("mailbox", ":create")
            case Tag("flags") if "flags" in tags and left and isinstance(found := left.pop(0), list):
                extensions.check("imap4flags", ":flags")
                flags = flags_of(found)
            case list() as found:
                texts.append(found)
            case Tag(name):
                raise Inexpressible(f":{name} has no counterpart among actions")
            case number:
                raise Inexpressible(f"it has the number {number}")
    if len(texts) != count or call.tests or call.block is not None or (texts and len(texts[0]) != 1 and not lists):
        raise Inexpressible(f"{call.name} does not have its {count} arguments")
    found = texts[0] if texts else []
    for text in found:
        extensions.check_text(text)
    return _Given(found, copies, flags)


def flags_of(texts: Iterable[str]) -> Flags:
    """The flags in a list of texts, each of which may hold several."""
    return frozenset(flag.lower() for text in texts for flag in text.split())


def folder_name(folder: str) -> str:
    """The folder, without the inbox above it."""
    for prefix in ("INBOX.", "INBOX/"):
        if folder.upper().startswith(prefix) and len(folder) > len(prefix):
            return folder[len(prefix) :]
    return folder


def is_inbox(folder: str) -> bool:
    return folder.lower() == INBOX


def is_trash(folder: str) -> bool:
    return folder.lower() in TRASH


def is_archive(folder: str) -> bool:
    return folder.lower() == ARCHIVE


def kinds_of(call: Call) -> frozenset[str]:
    """The effects of a command, or of anything inside it, that matter to commands before it."""
    if call.block is not None:
        return frozenset[str]().union(*map(kinds_of, call.block))
    folders = [folder_name(text) for each in call.arguments if isinstance(each, list) for text in each]
    found: set[str] = {"flags"} if Tag("flags") in call.arguments or call.name in FLAG_COMMANDS else set()
    match call.name:
        case "keep" | "discard" | "redirect":
            found.add(call.name)
        case "fileinto":
            found |= {"keep"} if any(map(is_inbox, folders)) else set()
            found |= {"trash"} if any(map(is_trash, folders)) else set()
        case "stop" | "require":
            pass
        case _ if call.name not in HARMLESS | FLAG_COMMANDS:
            found.add("unknown")
        case _:
            pass
    return frozenset(found)
