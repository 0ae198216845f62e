"""Converts rules to a Sieve script that does the same, as far as Sieve can express it.

A rule is an `if` that ends in `stop`, unless it continues. Folders take the place of labels: a message that leaves the
inbox is filed, one that stays is copied. Unlike here, a later rule cannot change the filing of a rule that continues.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from postroom.core.actions.parameters import recipients_of
from postroom.core.actions.steps import Step, steps_of
from postroom.core.rules.condition_spec import Inexpressible
from postroom.core.rules.conditions import SPECS
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.exchange import Exported, LeftOut, conditions_with_scope, why_not_exportable
from postroom.core.rules.implications import exclusive
from postroom.core.rules.sieve_effects import folder_name, is_archive, is_inbox, is_trash
from postroom.core.rules.sieve_terms import quoted, quoted_list

FLAGS = {"mark_read": "\\Seen", "star": "\\Flagged"}


def write_sieve_rules(drafts: Sequence[RuleDraft]) -> Exported:
    """An `if` for each rule that Sieve can express, in order."""
    left_out: list[LeftOut] = []
    needs: set[str] = set()
    parts: list[str] = []
    continuing: list[RuleDraft] = []
    for draft in drafts:
        wanted: set[str] = set()
        try:
            if reason := why_not_exportable(draft):
                raise Inexpressible(reason)
            own = conditions_with_scope(draft)
            before = [each for each in continuing if not exclusive(conditions_with_scope(each), own)]
            commands = _commands(draft, before, wanted)
            test = sieve_test(own, wanted)
        except Inexpressible as error:
            left_out.append(LeftOut(draft.name, draft.action_type, str(error)))
            continue
        needs |= wanted
        continuing += [draft] if draft.continues else []
        title = draft.name.replace("]", ")")
        lines = "".join(f"    {each}\n" for each in commands)
        parts.append(f"# rule:[{title}]\nif {test} {{\n{lines}}}\n")
    require = f"require [{', '.join(quoted(each) for each in sorted(needs))}];\n\n" if needs else ""
    return Exported(require + "\n".join(parts), left_out)


def _commands(draft: RuleDraft, before: Sequence[RuleDraft], needs: set[str]) -> list[str]:
    steps = steps_of(draft.action_type, draft.parameters)
    kinds = {step.action_type for step in steps}
    _check_beside(draft, kinds, before)
    end = [] if draft.continues else ["stop;"]
    if not steps:
        return [*([] if before else ["keep;"]), *end]
    found: list[str] = []
    if flags := [flag for action, flag in FLAGS.items() if action in kinds]:
        needs.add("imap4flags")
        found.append(f"addflag {quoted_list(flags)};")
    found += _write_filing(steps, kinds, needs)
    for step in steps:
        if step.action_type == "forward":
            found += _redirects(step, needs)
        elif step.action_type not in ("apply_label", "archive", "trash", *FLAGS):
            raise Inexpressible(f"Sieve cannot express {step.action_type}")
    return [*found, *end]


def _check_beside(draft: RuleDraft, kinds: set[str], before: Sequence[RuleDraft]) -> None:
    """Refuse what rules that continue would do together otherwise than commands do."""
    earlier = {step.action_type for each in before for step in steps_of(each.action_type, each.parameters)}
    if draft.continues and "trash" in kinds:
        raise Inexpressible("it trashes and continues; in Sieve a later rule would store the mail again")
    if earlier & {"apply_label", "archive"} and kinds & {"trash", *FLAGS}:
        raise Inexpressible("a rule before it files the mail and continues, and Sieve cannot change that copy")
    if "forward" in earlier & kinds:
        raise Inexpressible("a rule before it forwards and continues; of rules only one forwards, in Sieve both")


def _write_filing(steps: Sequence[Step], kinds: set[str], needs: set[str]) -> list[str]:
    folders = [str(step.parameters["label"]) for step in steps if step.action_type == "apply_label"]
    for folder in folders:
        if is_inbox(folder) or is_trash(folder) or is_archive(folder) or folder_name(folder) != folder:
            raise Inexpressible(f"the folder {folder!r} would mean something else")
    if "trash" in kinds:
        if len(kinds - FLAGS.keys()) > 1:
            raise Inexpressible("Sieve would store one copy in the trash and another elsewhere")
        folders = ["Trash"]
    elif "archive" in kinds:
        folders = folders or ["Archive"]
    needs |= {"fileinto"} if folders else set()
    if folders and not kinds & {"archive", "trash"}:
        needs.add("copy")
        return [f"fileinto :copy {quoted(folder)};" for folder in folders]
    return [f"fileinto {quoted(folder)};" for folder in folders]


def _redirects(step: Step, needs: set[str]) -> list[str]:
    if set(step.parameters) != {"to"}:
        raise Inexpressible("Sieve redirects without a note")
    needs.add("copy")
    return [f"redirect :copy {quoted(address)};" for address in recipients_of(step.parameters)]


def sieve_test(condition: Mapping[str, Any], needs: set[str]) -> str:
    """The test for these conditions; adds to `needs` the extensions that the script must require."""
    ((kind, argument),) = condition.items()
    match kind:
        case "and" | "or":
            inner = ", ".join(sieve_test(each, needs) for each in argument)
            return f"{'allof' if kind == 'and' else 'anyof'} ({inner})"
        case "not":
            return f"not {sieve_test(argument, needs)}"
        case kind if kind in SPECS and (write := SPECS[kind].sieve) is not None:
            return write(argument, needs)
        case _:
            raise Inexpressible(f"Sieve cannot express {kind}")
