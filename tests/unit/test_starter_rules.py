"""The starter rules on written messages: each does what its description says, and security alerts stay."""

from datetime import UTC, datetime

import pytest

from postroom.core.actions.safety import Policy
from postroom.core.actions.steps import steps_of
from postroom.core.errors import BadInput
from postroom.core.mail.files import MailFile
from postroom.core.mail.tiers import Known
from postroom.core.rules.draft import as_document, read_draft
from postroom.core.rules.starter import drafts_of, starters, starters_named
from postroom.operations.preview.arrivals import Recipient
from postroom.operations.preview.preview import Previewed, PreviewRules, preview_mail
from postroom.operations.preview.preview_rules import rules_of
from support import written_mail
from support.written_mail import BULK, FRIEND, MESSAGES, OWNER, SENT_ID, Written

NOW = datetime(2026, 11, 17, tzinfo=UTC)
NAMES = ["security", "people", "calendar", "forges", "receipts", "shipping", "travel", "newsletters"]


def previewed(starter: str, *mail: Written) -> list[Previewed]:
    known = Known.of([OWNER], [FRIEND], [SENT_ID])
    recipient = Recipient(OWNER, known, frozenset({FRIEND}))
    files = [MailFile(str(number), each.raw(number)) for number, each in enumerate(mail)]
    return preview_mail(files, PreviewRules(rules_of(drafts_of(starters_named([starter]))), Policy()), recipient, NOW)


@pytest.mark.parametrize("mail", MESSAGES, ids=lambda each: each.subject)
def test_all_together_do_with_a_message_what_is_written_beside_it(mail: Written) -> None:
    [row] = previewed("all", mail)
    assert (row.rules, row.action) == ([] if mail.rule is None else [mail.rule], mail.action)


def test_no_security_alert_leaves_the_inbox_whatever_is_chosen() -> None:
    alerts = [mail for mail in MESSAGES if mail.rule == "Security alerts"]
    assert alerts
    dressed_up = [mail._replace(head=f"{mail.head}\n{more}") for mail in alerts for more in DISGUISES]
    for starter in (*NAMES, "all"):
        assert not [row.subject for row in previewed(starter, *alerts, *dressed_up) if row.leaves_inbox]


DISGUISES = (
    f"{BULK}\nPrecedence: bulk",
    f"X-GitHub-Reason: subscribed\n{BULK}",
    "X-GitLab-Project: app\nAuto-Submitted: auto-generated",
)


def test_people_who_write_about_receipts_parcels_and_journeys_are_left_alone() -> None:
    subjects = ("Your receipt", "Invoice", "Your parcel is on its way", "Your booking", "My newsletter")
    mail = [Written(f"From: Jo Berg <jo@works.example>\nSubject: {subject}") for subject in subjects]
    assert [row.action for row in previewed("all", *mail)] == ["none"] * len(mail)


def test_each_has_its_own_name_description_and_rules_in_the_usual_form() -> None:
    assert [each.name for each in starters()] == NAMES
    drafts = drafts_of(starters())
    assert len({draft.name for draft in drafts}) == len(drafts)
    assert [draft.priority for draft in drafts] == sorted(draft.priority for draft in drafts)
    for each in starters():
        assert each.title
        assert each.description.endswith(".")
    for draft in drafts:
        assert draft.description.endswith(".")
        assert read_draft(as_document(draft)) == draft
        assert {step.action_type for step in steps_of(draft.action_type, draft.parameters)} <= {
            "apply_label",
            "archive",
        }


def test_security_alerts_come_before_a_persons_own_rules_and_the_others_after_them() -> None:
    first, *others = drafts_of(starters())
    assert first.priority < 100
    assert all(draft.priority > 100 for draft in others)


def test_starters_are_chosen_by_name_each_once() -> None:
    assert [each.name for each in starters_named(["newsletters", "security", "newsletters"])] == [
        "security",
        "newsletters",
    ]
    assert len(starters_named(["all"])) == len(NAMES)
    with pytest.raises(BadInput, match="did you mean 'travel'"):
        starters_named(["travl"])


def test_every_rule_is_shown_by_a_written_message() -> None:
    shown = {mail.rule for mail in written_mail.MESSAGES}
    assert {draft.name for draft in drafts_of(starters())} <= shown
