"""A preview says what the product then does: written messages through both, compared action for action."""

from datetime import UTC, datetime
from pathlib import Path

from postroom.core.actions.safety import Policy
from postroom.core.actions.steps import shown
from postroom.core.mail.contacts import Contact
from postroom.core.mail.files import MailFile
from postroom.core.mail.ingestion import DEFAULT_POLICY
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.starter import drafts_of, starters
from postroom.manage.arrivals import read_history
from postroom.manage.preview import Previewer, PreviewRules
from postroom.manage.preview_mail import recipient_of
from postroom.manage.preview_rules import rules_of
from postroom.store.audit import Signature
from postroom.store.contacts import EVERY_MAILBOX, keep_contacts
from postroom.store.engine.clock import wall_clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.rules import add_rules
from postroom_sandbox.mailbox import Mailbox
from support.product import OWNER, running_product
from support.written_mail import FRIEND, MESSAGES, SENT

NOW = datetime(2026, 11, 17, tzinfo=UTC)
# Rules of one's own, tried after security alerts and before the other starter rules.
OWN = (
    RuleDraft("talks", {"subject_words": "talk"}, "star", priority=50, continues=True),
    RuleDraft("to the bank", {"subject_words": "invoice"}, "forward", {"to": "bank@b.example"}, priority=60),
    RuleDraft("questions", {"subject_contains": "?"}, "mark_read", needs_approval=True, priority=70),
    RuleDraft("words", {"body_words": "hello"}, "star", priority=950, continues=True),
)


async def test_what_a_preview_foresees_is_what_the_product_does(sqlite: Database, tmp_path: Path) -> None:
    drafts = [*OWN, *drafts_of(starters())]
    files = [MailFile(str(number), mail.raw(number)) for number, mail in enumerate(MESSAGES)]
    everything = [MailFile("sent", f"{SENT}\n\nHello\n".encode()), *files]
    recipient = recipient_of(read_history(everything), [OWNER], frozenset({FRIEND}), DEFAULT_POLICY)
    previewer = Previewer(PreviewRules(rules_of(drafts), Policy()), recipient, NOW)
    for mail in files:
        previewer.add(mail)
    foreseen = {row.subject: (row.policy_tier, row.rules[:1], row.action, row.result) for row in previewer.finish()}

    def deliver(mailbox: Mailbox) -> None:
        mailbox.deliver(everything[0].raw, ["SENT"])

    async with running_product(sqlite, tmp_path, prepare=deliver, policy=DEFAULT_POLICY) as product:
        book = [Contact(FRIEND, "Ida")]
        signed = Signature(new_id(), "test", "admin")
        await sqlite.run(keep_contacts(book, "vcard", EVERY_MAILBOX, signed, wall_clock()))
        await product.parts.contacts.refresh()
        await sqlite.run(add_rules([(new_id(), draft) for draft in drafts], wall_clock()))
        await product.live.sync()
        for mail in files:
            product.mailbox.deliver(mail.raw)
        await product.live.sync()
        rows = await product.until_decided(len(files))
    done = {
        row.subject: (
            row.tier,
            _names(row.rule_name),
            shown(row.action_type or "none", row.parameters),
            _result(row.action_state),
        )
        for row in rows
    }
    assert len(done) == len(MESSAGES)
    assert done == foreseen
    assert {result for *_, result in done.values()} == {"done", "waits", "stays"}


def _names(rule: str | None) -> list[str]:
    return [] if rule is None else [rule]


def _result(state: str | None) -> str:
    match state:
        case None:
            return "stays"
        case "awaiting_approval":
            return "waits"
        case _:
            return "done"
