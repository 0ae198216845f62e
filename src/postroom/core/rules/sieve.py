"""Converts Sieve scripts to rules and back, as far as both can express the same.

Sieve continues after a command unless it is stopped; with rules, the first that matches decides. Each branch becomes a
rule with one action, in the order of the script. Where something that cannot be imported might have kept mail from a
later branch, that branch is imported disabled, for review: without the former it could match more than it should.
"""

from collections.abc import Sequence
from typing import Any

from postroom.core.rules.draft import REVIEW, RuleDraft
from postroom.core.rules.exchange import (
    Exported,
    Imported,
    Inexpressible,
    LeftOut,
    all_of,
    any_of,
    conditions_with_scope,
    why_not_exportable,
)
from postroom.core.rules.sieve_syntax import Call, read_sieve
from postroom.core.rules.sieve_tests import condition_of, quoted, sieve_test

ARCHIVE, TRASH = "Archive", frozenset({"trash", "deleted items", "bin"})
FLAGS = {"\\seen": "mark_read", "\\flagged": "star"}
BRANCHES = ("if", "elsif", "else")
DOUBT = f"{REVIEW}: something before it in the script was not imported, or waits for review too"
GOES_ON = "Sieve would go on with what follows; with rules, the first that matches decides"
ONE_ACTION = "a rule does one thing, and another action of this branch is imported"

Action = tuple[str, dict[str, Any]]


def read_sieve_rules(text: str) -> Imported:
    """The branches of a script as rules. Raises BadInput when it is not Sieve."""
    reading = _Reading()
    reading.commands(read_sieve(text), [], None)
    return reading.imported


class _Reading:
    def __init__(self) -> None:
        self.imported = Imported()
        self._doubt: str | None = None
        self._runs_on = False
        self._warned = False

    def commands(self, commands: Sequence[Call], guard: list[dict[str, Any]], title: str | None) -> None:
        """Import a block or the whole script: its branches in order, and the commands beside them."""
        for number, call in enumerate(commands):
            if call.name == "stop":
                return
            if call.name == "if":
                chain = [call]
                for each in commands[number + 1 :]:
                    if each.name not in ("elsif", "else"):
                        break
                    chain.append(each)
                self._chain(chain, guard, title or call.title)
            elif call.name not in ("require", "elsif", "else"):
                self._leave_out(call, "it is outside of any `if`; a rule needs a condition")

    def _chain(self, chain: Sequence[Call], guard: list[dict[str, Any]], title: str | None) -> None:
        if self._runs_on and not self._warned:
            self._leave_out(chain[0], GOES_ON)
            self._warned = True
        tests: list[dict[str, Any]] | None = []
        doubt, lasting = self._doubt, self._doubt
        for call in chain:
            conditions = self._conditions(call, tests)
            if conditions is None:
                tests = None
            elif tests is not None and call.name != "else":
                tests.append(conditions)
            if conditions is None or not self._rule(call, [*guard, conditions], title):
                self._doubt = DOUBT
                lasting = DOUBT if _stops(call) else lasting
        # Without a `stop`, the branches' mail would have reached what follows the chain anyway.
        self._doubt = lasting if not guard else self._doubt or doubt
        self._runs_on = not all(_stops(call) for call in chain)

    def _conditions(self, call: Call, tests: list[dict[str, Any]] | None) -> dict[str, Any] | None:
        """The conditions of a branch; None, and reported, if they have no counterpart. `tests` are those before it."""
        try:
            if call.name == "else":
                if not tests:
                    raise Inexpressible("it applies to what the branches before it leave, and those were not imported")
                return {"not": any_of(tests)}
            if not call.tests:
                raise Inexpressible("it has no test")
            return condition_of(call.tests[0])
        except Inexpressible as error:
            self._leave_out(call, str(error))
            return None

    def _rule(self, branch: Call, conditions: list[dict[str, Any]], title: str | None) -> bool:
        """Import a branch as one or more rules. False when one is missing, or disabled for review."""
        block = branch.block or []
        before = len(self.imported.drafts)
        if block and all(call.name in (*BRANCHES, "stop") for call in block) and block[0].name == "if":
            self.commands(block, conditions, title)
        else:
            actions = self._actions(block)
            for _, spare in actions[1:]:
                self._leave_out(spare, ONE_ACTION)
            # A branch without any importable action still keeps its mail from the branches after it.
            action, parameters = actions[0][0] if actions else ("none", {})
            name = title or f"Sieve line {branch.line}: {branch.name}"
            self.imported.add(f"line {branch.line}", name, all_of(conditions), action, parameters, self._doubt)
        made = self.imported.drafts[before:]
        return bool(made) and all(draft.enabled for draft in made)

    def _actions(self, block: Sequence[Call]) -> list[tuple[Action, Call]]:
        found: list[tuple[Action, Call]] = []
        for call in block:
            if call.name == "stop":
                break
            try:
                found += [(action, call) for action in _actions_of(call)]
            except Inexpressible as error:
                self._leave_out(call, str(error))
            else:
                if call.name == "fileinto" and "copy" not in call.tags and found[-1][0][0] == "apply_label":
                    self._leave_out(call, "it becomes a label; the mail stays in the inbox, too")
        return found

    def _leave_out(self, call: Call, why: str) -> None:
        self.imported.left_out.append(LeftOut(f"line {call.line}", call.name, why))


def _stops(call: Call) -> bool:
    return any(each.name == "stop" for each in call.block or ())


def _actions_of(call: Call) -> list[Action]:
    words = call.strings[-1] if call.strings else []
    match call.name:
        case "keep" if not call.tags:
            return [("none", {})]
        case "discard":
            return [("trash", {})]
        case "redirect" if len(words) == 1:
            return [("forward", {"to": words[0]})]
        case "fileinto" if len(words) == 1 and not set(call.tags) - {"copy", "create"}:
            return [_filed(words[0])]
        case "addflag" | "setflag" if words:
            unknown = [flag for flag in words if flag.lower() not in FLAGS]
            if unknown:
                raise Inexpressible(f"the flag {unknown[0]} has no counterpart among actions")
            return [(FLAGS[flag.lower()], {}) for flag in words]
        case _:
            raise Inexpressible("it has no counterpart among actions")


def _filed(folder: str) -> Action:
    name = folder
    for prefix in ("INBOX.", "INBOX/"):
        name = name[len(prefix) :] if name.upper().startswith(prefix) and len(name) > len(prefix) else name
    if name.upper() == "INBOX":
        return "none", {}
    if name == ARCHIVE:
        return "archive", {}
    return ("trash", {}) if name.lower() in TRASH else ("apply_label", {"label": name})


def write_sieve_rules(drafts: Sequence[RuleDraft]) -> Exported:
    """One `if` with a `stop` for each rule that Sieve can express, in order."""
    left_out: list[LeftOut] = []
    needs: set[str] = set()
    parts: list[str] = []
    for draft in drafts:
        wanted: set[str] = set()
        try:
            if reason := why_not_exportable(draft):
                raise Inexpressible(reason)
            action = _action_text(draft, wanted)
            test = sieve_test(conditions_with_scope(draft), wanted)
        except Inexpressible as error:
            left_out.append(LeftOut(draft.name, draft.action_type, str(error)))
            continue
        needs |= wanted
        title = draft.name.replace("]", ")")
        parts.append(f"# rule:[{title}]\nif {test} {{\n    {action}\n    stop;\n}}\n")
    require = f"require [{', '.join(quoted(each) for each in sorted(needs))}];\n\n" if needs else ""
    return Exported(require + "\n".join(parts), left_out)


def _action_text(draft: RuleDraft, needs: set[str]) -> str:
    match draft.action_type, draft.parameters.get("to"):
        case "none", _:
            return "keep;"
        case "trash", _:
            return "discard;"
        case "archive", _:
            needs.add("fileinto")
            return f'fileinto "{ARCHIVE}";'
        case "apply_label", _:
            needs.update(("fileinto", "copy"))
            return f"fileinto :copy {quoted(draft.parameters['label'])};"
        case ("star" | "mark_read") as action, _:
            needs.add("imap4flags")
            return 'addflag "\\\\Flagged";' if action == "star" else 'addflag "\\\\Seen";'
        case "forward", str(address):
            return f"redirect {quoted(address)};"
        case _:
            raise Inexpressible(f"Sieve cannot express {draft.action_type}")
