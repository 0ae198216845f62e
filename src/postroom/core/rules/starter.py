"""The starter rules that ship with Postroom: off until chosen, and explained in plain words.

Each starter is one rule or several, in the same form as a person's own (core/rules/draft.py). They come after the
user's own rules, except for security alerts, which come before, so that such mail always stays in the inbox. No starter
rule that archives matches a security alert either, so that this holds even where only one is chosen.

They read only subjects, headers and people, since the text of bulk mail is not stored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from postroom.core.errors import BadInput
from postroom.core.rules.draft import RuleDraft, read_draft
from postroom.core.rules.starter_words import (
    CALENDAR_ANSWERS,
    CALENDAR_INVITATIONS,
    INVOICES,
    PROGRAMS,
    RECEIPTS,
    SECURITY,
    SHIPPING,
    TRAVEL,
)
from postroom.core.rules.words import quoted_phrase
from postroom.core.suggestions import did_you_mean

EVERY = "all"
# Before rules of the default priority, 100, and after them.
FIRST, LAST = 0, 900

Conditions = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Starter:
    """A starter by its name: its purpose, and its rules in order."""

    name: str
    title: str
    description: str
    rules: tuple[RuleDraft, ...]


def starters_named(names: Sequence[str], field: str = "starter") -> list[Starter]:
    """The starters with these names, each once, in their own order; `all` is every one. Raises BadInput."""
    known = {each.name: each for each in starters()}
    wanted = set(known) if EVERY in names else set(names)
    for name in names:
        if name not in known and name != EVERY:
            remedy = did_you_mean(name[:80], known, f"use one of {', '.join(known)}, or {EVERY}")
            raise BadInput(field, f"there are no starter rules {name[:80]!r}", remedy)
    return [each for each in known.values() if each.name in wanted]


def drafts_of(chosen: Iterable[Starter]) -> list[RuleDraft]:
    return [draft for starter in chosen for draft in starter.rules]


@cache
def starters() -> tuple[Starter, ...]:
    """Every starter, in the order in which their rules are tried."""
    return (_security(), _people(), _calendar(), _forges(), _receipts(), _shipping(), _travel(), _newsletters())


def _security() -> Starter:
    return Starter(
        "security",
        "Security alerts",
        "Sign-ins, changed passwords, codes and warnings about an account get the label Security and stay in the "
        "inbox, whatever other rules say.",
        (
            _rule(
                "Security alerts",
                "A sign-in, a changed password, a code or a warning about an account. It is never archived.",
                _security_alert(),
                ["apply_label Security"],
                FIRST,
            ),
        ),
    )


def _people() -> Starter:
    known = {"and": [{"sender_in_contacts": True}, {"not": _bulk()}]}
    return Starter(
        "people",
        "People you know",
        "Mail of people in your contacts, and answers to what you wrote, gets the label People and stays in the inbox.",
        (
            _rule("People you know", "The sender is in your contacts.", known, ["apply_label People"], LAST),
            _rule(
                "Answers to your mail",
                "It answers a message that you sent.",
                {"and": [{"reply_to_mine": True}, {"not": _bulk()}]},
                ["apply_label People"],
                LAST + 1,
            ),
        ),
    )


def _calendar() -> Starter:
    return Starter(
        "calendar",
        "Calendar",
        "Invitations get the label Calendar and stay in the inbox; acceptances and refusals of others get it and are "
        "archived.",
        (
            _rule(
                "Calendar answers",
                "Someone accepted or declined an invitation of yours; the calendar shows it.",
                _archivable({"subject_regex": rf"(?i)^\s*({'|'.join(CALENDAR_ANSWERS)})\s*:"}),
                ["apply_label Calendar", "archive"],
                LAST + 10,
            ),
            _rule(
                "Calendar invitations",
                "An invitation, or a change of one.",
                {"subject_regex": rf"(?i)^\s*({'|'.join(CALENDAR_INVITATIONS)})\s*:"},
                ["apply_label Calendar"],
                LAST + 11,
            ),
        ),
    )


def _forges() -> Starter:
    asked = [
        _header("X-GitHub-Reason", "^(mention|team_mention|review_requested|assign|author|security_alert)$"),
        _header(
            "X-GitLab-NotificationReason", "^(mentioned|directly_addressed|assigned|review_requested|own_activity)$"
        ),
    ]
    forge = [
        _header("X-GitHub-Reason"),
        _header("X-GitLab-Project"),
        _header("X-Gitea-Reason"),
        _header("X-Forgejo-Reason"),
        _header("X-SourceHut-Patchset-Status"),
        _header("List-Id", r"(?i)[.@<](github\.com|gitlab\.com|codeberg\.org|bitbucket\.org|gitea\.com)>"),
        {"from": "notifications@github.com"},
    ]
    return Starter(
        "forges",
        "Code forges",
        "Notifications of GitHub, GitLab, Gitea, Forgejo and the like get the label Code. Those that mention you, are "
        "assigned to you or ask for your review stay in the inbox; the others are archived.",
        (
            _rule(
                "Code that asks for you",
                "You are mentioned, assigned, or asked for a review.",
                {"or": asked},
                ["apply_label Code"],
                LAST + 20,
            ),
            _rule(
                "Code notifications",
                "Any other notification of a code forge.",
                _archivable({"or": forge}),
                ["apply_label Code", "archive"],
                LAST + 21,
            ),
        ),
    )


def _receipts() -> Starter:
    return Starter(
        "receipts",
        "Receipts",
        "Receipts and confirmations of orders that a program sent get the label Receipts and are archived. Invoices "
        "and reminders, which may have to be paid, get it and stay in the inbox.",
        (
            _rule(
                "Invoices",
                "An invoice or a reminder: it may have to be paid.",
                {"and": [_in_subject(INVOICES), _from_a_program()]},
                ["apply_label Receipts"],
                LAST + 30,
            ),
            _rule(
                "Receipts",
                "A receipt or the confirmation of an order.",
                _archivable(_in_subject(RECEIPTS), _from_a_program()),
                ["apply_label Receipts", "archive"],
                LAST + 31,
            ),
        ),
    )


def _shipping() -> Starter:
    return Starter(
        "shipping",
        "Shipping",
        "Notices about parcels that a program sent get the label Shipping and stay in the inbox.",
        (
            _rule(
                "Shipping",
                "A parcel is on its way, arrives, or was delivered.",
                {"and": [_in_subject(SHIPPING), _from_a_program()]},
                ["apply_label Shipping"],
                LAST + 40,
            ),
        ),
    )


def _travel() -> Starter:
    return Starter(
        "travel",
        "Travel",
        "Bookings, tickets and changes of journeys that a program sent get the label Travel and stay in the inbox.",
        (
            _rule(
                "Travel",
                "A booking, a ticket, a check-in or a change of a journey.",
                {"and": [_in_subject(TRAVEL), _from_a_program()]},
                ["apply_label Travel"],
                LAST + 50,
            ),
        ),
    )


def _newsletters() -> Starter:
    about_you: list[Conditions] = [{"category": name} for name in ("finance", "health", "travel")]
    discussions = [_header("List-Post", "(?i)mailto:"), {"subject_regex": r"(?i)^\s*(re|aw|antw|sv|tr|rif)\s*:"}]
    return Starter(
        "newsletters",
        "Newsletters",
        "Newsletters and other bulk mail get the label Newsletters and are archived. What concerns your money, your "
        "health or a journey of yours is left alone, and so are discussions on mailing lists.",
        (
            _rule(
                "Newsletters",
                "Bulk mail that is about nothing of yours.",
                _archivable({"category": "newsletters"}, _bulk(), {"not": {"or": [*about_you, *discussions]}}),
                ["apply_label Newsletters", "archive"],
                LAST + 60,
            ),
        ),
    )


def _rule(name: str, description: str, conditions: Conditions, actions: list[str], priority: int) -> RuleDraft:
    return read_draft(
        {"name": name, "description": description, "priority": priority, "if": conditions, "actions": actions}
    )


def _archivable(*conditions: Conditions) -> Conditions:
    """The conditions, for mail that is no security alert."""
    return {"and": [*conditions, {"not": _security_alert()}]}


def _security_alert() -> Conditions:
    return {"or": [*_in_subject(SECURITY)["or"], _header("X-GitHub-Reason", "^security_alert$")]}


def _in_subject(phrases: Iterable[str]) -> Conditions:
    return {"or": [{"subject_words": quoted_phrase(each)} for each in phrases]}


def _from_a_program() -> Conditions:
    """Mail that a program sent: people write about receipts too."""
    senders: list[Conditions] = [{"from_words": quoted_phrase(each)} for each in PROGRAMS]
    return {"or": [*senders, _header("Auto-Submitted", "(?i)^auto-generated"), _header("Feedback-ID"), _bulk()]}


def _bulk() -> Conditions:
    return {"or": [_header("List-Unsubscribe"), _header("Precedence", "(?i)^(bulk|list|junk)$")]}


def _header(name: str, pattern: str | None = None) -> Conditions:
    return {"header_match": {"name": name} | ({} if pattern is None else {"pattern": pattern})}
