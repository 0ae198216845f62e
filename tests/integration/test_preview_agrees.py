"""A preview says what the product then does: written messages through both, compared action for action."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from postroom.compose.application import PostroomApplication
from postroom.core.actions.safety import Policy
from postroom.core.actions.steps import shown
from postroom.core.mail.contacts import Contact
from postroom.core.mail.files import MailFile
from postroom.core.mail.ingestion import DEFAULT_POLICY
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.starter import drafts_of, starters
from postroom.operations.preview.arrivals import IncomingMessage, read_history
from postroom.operations.preview.preview import Previewer, PreviewRules
from postroom.operations.preview.preview_account import fetch_mail
from postroom.operations.preview.preview_mail import recipient_of
from postroom.operations.preview.preview_processes import LEAST, preview_all
from postroom.operations.preview.preview_rules import rules_of
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.contacts import EVERY_MAILBOX, keep_contacts
from postroom.store.people.audit import Signature
from postroom.store.rules.rules import add_rules
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.mailbox import Mailbox
from support.product import OWNER, TOKEN, raw_mail, running_product
from support.written_mail import FRIEND, MESSAGES, SENT

NOW = datetime(2026, 11, 17, tzinfo=UTC)
# Rules of one's own, tried after security alerts and before the other starter rules.
OWN = (
    RuleDraft("talks", {"subject_words": "talk"}, "star", priority=50, continues=True),
    RuleDraft("to the bank", {"subject_words": "invoice"}, "forward", {"to": "bank@b.example"}, priority=60),
    RuleDraft("questions", {"subject_contains": "?"}, "mark_read", needs_approval=True, priority=70),
    RuleDraft("words", {"body_words": "hello"}, "star", priority=945, continues=True),
)


async def test_what_a_preview_foresees_is_what_the_product_does(sqlite: Database, tmp_path: Path) -> None:
    drafts = [*OWN, *drafts_of(starters())]
    files = [MailFile(str(number), mail.raw(number)) for number, mail in enumerate(MESSAGES)]
    everything = [MailFile("sent", f"{SENT}\n\nHello\n".encode()), *files]
    recipient = recipient_of(
        read_history(map(IncomingMessage, everything)), [OWNER], frozenset({FRIEND}), DEFAULT_POLICY
    )
    previewer = Previewer(PreviewRules(rules_of(drafts), Policy()), recipient, NOW)
    for mail in files:
        previewer.add(IncomingMessage(mail))
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


async def test_own_mail_that_comes_back_by_a_list_is_left_alone_as_the_preview_and_the_simulation_say(
    sqlite: Database, tmp_path: Path
) -> None:
    trash = RuleDraft("lists", {"to": "friends@lists.example"}, "trash")
    failed = {"Authentication_Results": "mx.google.com; dmarc=fail header.from=lindqvist.example"}
    mail = {
        "back": raw_mail("back", OWNER, "friends@lists.example", List_Id="<friends.lists.example>"),
        "copy": raw_mail("copy", OWNER, "friends@lists.example", Cc=OWNER),
        "forged": raw_mail("forged", OWNER, "friends@lists.example", **failed),
        "other": raw_mail("other", "ida@x.example", "friends@lists.example"),
    }
    files = [IncomingMessage(MailFile(name, raw)) for name, raw in mail.items()]
    recipient = recipient_of(read_history(files), [OWNER], None, DEFAULT_POLICY)
    previewer = Previewer(PreviewRules(rules_of([trash]), Policy()), recipient, NOW)
    for each in files:
        previewer.add(each)
    foreseen = {row.path: row.result for row in previewer.finish()}
    assert foreseen == {"back": "own", "copy": "done", "forged": "done", "other": "done"}

    async with running_product(sqlite, tmp_path) as product:
        await sqlite.run(add_rules([(new_id(), trash)], wall_clock()))
        ids = {name: product.mailbox.deliver(raw).id for name, raw in mail.items()}
        await product.live.sync()
        rows = await product.settled(3)
        trashed = {name for name, id in ids.items() if "TRASH" in product.mailbox.get(id).labels}
    assert trashed == {name for name, result in foreseen.items() if result == "done"}
    assert "back" not in {row.subject for row in rows}


async def test_the_mail_of_a_connected_mailbox_is_previewed_as_it_arrived(sqlite: Database, tmp_path: Path) -> None:
    files = [MailFile(str(number), mail.raw(number)) for number, mail in enumerate(MESSAGES)]

    def deliver(mailbox: Mailbox) -> None:
        mailbox.deliver(f"{SENT}\n\nHello\n".encode(), ["SENT"])
        for number, mail in enumerate(files):
            mailbox.deliver(mail.raw, ["INBOX", "UNREAD"] if number % 2 else ["STARRED"])

    async with running_product(sqlite, tmp_path, prepare=deliver) as product:
        gmail = {"base_url": product.address, "token": TOKEN}
        settings = Settings.model_validate({"data_dir": tmp_path, "account": {"email": OWNER}, "gmail": gmail})
        opened = partial(PostroomApplication().open_source, settings)
        before = product.mailbox.history_id
        fetched = await fetch_mail(sqlite, OWNER, 100, opened, lambda _number: None)
        assert len((await fetch_mail(sqlite, OWNER, 3, opened, lambda _number: None)).newest.messages) == 3
        assert product.mailbox.history_id == before
    mail = fetched.newest.messages
    assert (fetched.email, len(mail)) == (OWNER, len(files) + 1)
    recipient = recipient_of(read_history(mail), [fetched.email], frozenset({FRIEND}), DEFAULT_POLICY)
    previewer = Previewer(PreviewRules(rules_of(drafts_of(starters())), Policy()), recipient, NOW)
    for incoming in mail:
        previewer.add(incoming)
    found = {row.subject: (row.rules, row.action) for row in previewer.finish() if row.result != "own"}
    assert found == {mail.subject: (_names(mail.rule), mail.action) for mail in MESSAGES}


def test_several_processes_foresee_what_one_does() -> None:
    files = [IncomingMessage(MailFile(str(number), mail.raw(number))) for number, mail in enumerate(MESSAGES * 4)]
    recipient = recipient_of(read_history(files), [OWNER], frozenset({FRIEND}), DEFAULT_POLICY)
    chosen = PreviewRules(rules_of([*OWN, *drafts_of(starters())]), Policy(trust_rules=True, hourly_cap=2))
    alone, together = Previewer(chosen, recipient, NOW), Previewer(chosen, recipient, NOW)
    preview_all(files, alone, 0, lambda _number: None)
    preview_all(files, together, LEAST, lambda _number: None)
    rows = together.finish()
    assert [row.path for row in rows] == [each.mail.path for each in files]
    assert rows == alone.finish()
    # Forwards beyond the cap of an hour wait, and earlier ones do not.
    forwards = [row.result for row in sorted(rows, key=lambda row: row.sent_at or NOW) if "forward" in row.action]
    assert forwards == ["done", "done", "waits", "waits"]


def _names(rule: str | None) -> list[str]:
    return [] if rule is None else [rule]


def _result(state: str | None) -> str:
    match state:
        case None:
            return "stays"
        case "approved_pending":
            return "waits"
        case _:
            return "done"
