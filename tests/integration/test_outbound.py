"""Forwards and automatic answers from end to end: requested, built, admitted, sent by a draft, and completed."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from postroom.core.actions.action import ActionType
from postroom.core.actions.safety import Policy, Ruling
from postroom.core.errors import Refused
from postroom.core.jobs.types import CATALOGUE
from postroom.core.rules.draft import RuleDraft
from postroom.store.actions import actions, decisions, pauses, protection
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.jobs import jobs
from postroom.store.jobs.new_jobs import new_job
from postroom.store.mail import labels
from postroom.store.mail.mail import load_message
from postroom.store.outbound import outbound, outbound_answers
from postroom.store.people.audit import Signature
from postroom.store.rules import rules
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.action_requests import APPROVAL_TIME, ActionRequests, action_and_job
from postroom_sandbox.faults import Fault
from postroom_sandbox.history import Change
from postroom_sandbox.message import Message
from support.product import OWNER, Product, raw_mail, running_product

ADA = "ada@example.com"
BEN = "ben@example.com"


@dataclass
class SendingSetup:
    """A running product, and what a test sends with it."""

    product: Product
    database: Database

    def signed(self) -> Signature:
        return Signature(new_id(), "test", "admin")

    async def receive(self, raw: bytes) -> tuple[Message, UUID]:
        """A message that has come and was looked at: as it is in the mailbox, and its id here."""
        message = self.product.mailbox.deliver(raw)
        await self.product.live.sync()

        async def look() -> UUID | None:
            for job in await self.database.run(jobs.list_jobs("completed", "classify", 100)):
                stored = await self.database.run(load_message(UUID(json.loads(job.payload_json)["message_id"])))
                if stored.provider_message_id == message.id:
                    return stored.id
            return None

        return message, await self._until(look)

    async def ask(self, message_id: UUID, action: str, **parameters: Any) -> UUID:
        requests = ActionRequests(self.database, CATALOGUE, Policy(), wall_clock)
        asked = await requests.ask(
            message_id, action, parameters, source="user", asked_by="test", why="a test", signed=self.signed()
        )
        return asked.action_id

    async def do(self, message_id: UUID, action: str, **parameters: Any) -> actions.ActionView:
        return await self.ended(await self.ask(message_id, action, **parameters))

    async def ended(self, id: UUID) -> actions.ActionView:
        return await self.until_action(id, lambda view: view.state in ("completed", "failed", "canceled"))

    async def until_action(self, id: UUID, holds: Callable[[actions.ActionView], bool]) -> actions.ActionView:
        async def look() -> actions.ActionView | None:
            views = await self.database.run(actions.list_actions(1000))
            return next((view for view in views if view.id == id and holds(view)), None)

        return await self._until(look)

    async def until_delivery(self, *states: str) -> outbound.MailView:
        async def look() -> outbound.MailView | None:
            found = await self.database.run(outbound.list_mail(10))
            return next((each for each in found if each.state in states), None)

        return await self._until(look)

    async def _until(self, look: Callable[[], Any]) -> Any:
        changed = asyncio.Event()
        channels = (decisions.CHANNEL, jobs.CHANNEL, outbound.CHANNEL)
        subscriptions = [self.database.subscribe(each, lambda _message: changed.set()) for each in channels]
        try:
            async with asyncio.timeout(self.product.patience_s):
                while True:
                    changed.clear()
                    if (found := await look()) is not None:
                        return found
                    await signalled(changed, 0.1)
        finally:
            for subscription in subscriptions:
                subscription.close()

    def sent(self) -> list[Message]:
        return list(self.product.mailbox.search(label_ids=["SENT"], include_spam_trash=True))

    def one_sent(self) -> tuple[Message, EmailMessage]:
        (sent,) = self.sent()
        return sent, read(sent.mail.raw)

    async def until_no_draft(self) -> None:
        """A draft is taken away after it was written down that it will not be sent."""

        async def look() -> bool | None:
            return None if self.drafts() else True

        await self._until(look)

    def drafts(self) -> list[Message]:
        return list(self.product.mailbox.search(label_ids=["DRAFT"], include_spam_trash=True))


def read(raw: bytes) -> EmailMessage:
    return message_from_bytes(raw, policy=policy.default)


def text_of(mail: EmailMessage) -> str:
    part = mail.get_body(("plain",))
    assert part is not None
    return part.get_content().replace("\r\n", "\n")


@asynccontextmanager
async def opened(database: Database, folder: Path) -> AsyncGenerator[SendingSetup]:
    async with running_product(database, folder) as product:
        yield SendingSetup(product, database)


@pytest.fixture
async def setup(sqlite: Database, tmp_path: Path) -> AsyncGenerator[SendingSetup]:
    async with opened(sqlite, tmp_path) as setup:
        yield setup


@pytest.fixture
async def either_setup(database: Database, tmp_path: Path) -> AsyncGenerator[SendingSetup]:
    """On SQLite and on PostgreSQL."""
    async with opened(database, tmp_path) as setup:
        yield setup


async def test_an_answer_goes_to_the_sender_in_the_same_conversation(either_setup: SendingSetup) -> None:
    setup = either_setup
    references = "<first@example.com> <second@example.com>"
    raw = raw_mail("Lunch?", f"Ada <{ADA}>", Message_ID="<third@example.com>", References=references)
    original, id = await setup.receive(raw)
    done = await setup.do(id, "auto_reply", text="I am away.\nUntil Monday.")
    assert done.state == "completed", done.error
    sent, mail = setup.one_sent()
    assert done.undo_hint == {
        "action": "auto_reply",
        "inverse_action": "none",
        "irreversible": True,
        "sent_message_id": sent.id,
    }
    assert sent.thread_id == original.thread_id
    assert mail["To"] == ADA
    assert mail["From"] == OWNER
    assert mail["Subject"] == "Re: Lunch?"
    assert mail["In-Reply-To"] == "<third@example.com>"
    assert mail["References"] == f"{references} <third@example.com>"
    assert mail["Auto-Submitted"] == "auto-replied"
    assert mail["X-Auto-Response-Suppress"] == "All"
    assert text_of(mail) == "I am away.\nUntil Monday."
    assert setup.drafts() == []
    (delivery,) = await setup.database.run(outbound.list_mail(10))
    assert (delivery.state, delivery.sent_message_id, delivery.attempts) == ("sent", sent.id, 1)


async def test_a_forward_is_a_new_conversation_with_the_note_the_text_and_the_files(either_setup: SendingSetup) -> None:
    setup = either_setup
    content = bytes(range(256)) * 20
    original, id = await setup.receive(with_attachment("Rechnung für März", "Prüfung.pdf", content))
    done = await setup.do(id, "forward", to=[BEN, "cleo@example.com"], note="Bitte prüfen")
    assert done.state == "completed", done.error
    sent, mail = setup.one_sent()
    assert sent.thread_id != original.thread_id
    assert mail["To"] == f"{BEN}, cleo@example.com"
    assert mail["Subject"] == "Fwd: Rechnung für März"
    assert mail["In-Reply-To"] is None
    assert mail["References"] is None
    text = text_of(mail)
    assert text.startswith("Bitte prüfen\n")
    assert f"From: {ADA}" in text
    assert "Anbei die Rechnung." in text
    (file,) = mail.iter_attachments()
    assert file.get_filename() == "Prüfung.pdf"
    assert file.get_content_type() == "application/pdf"
    assert file.get_content() == content
    assert sent.mail.raw.isascii()


async def test_a_forward_keeps_the_html_goes_out_under_the_users_name_and_copies_whom_the_rule_names(
    setup: SendingSetup,
) -> None:
    setup.product.emulator.accounts[OWNER].send_as.own_name = "Mara Lindqvist"
    page = EmailMessage()
    page["From"], page["To"], page["Subject"] = f"Ada <{ADA}>", OWNER, "News"
    page.set_content("Plain news")
    page.add_alternative("<html><body><p>Fine <b>news</b></p></body></html>", subtype="html")
    _, id = await setup.receive(page.as_bytes())
    done = await setup.do(id, "forward", to=BEN, cc=["cleo@example.com"], subject="Read this")
    assert done.state == "completed", done.error
    _, mail = setup.one_sent()
    assert (mail["From"], mail["To"], mail["Cc"]) == (f"Mara Lindqvist <{OWNER}>", BEN, "cleo@example.com")
    assert mail["Subject"] == "Read this"
    body = mail.get_body(("html",))
    assert body is not None
    assert "<p>Fine <b>news</b></p>" in body.get_content()
    assert "Plain news" in text_of(mail)
    (delivery,) = await setup.database.run(outbound.list_mail(10))
    assert delivery.recipients == (BEN, "cleo@example.com")


async def test_a_job_that_says_anything_else_than_its_action_sends_nothing(setup: SendingSetup) -> None:
    _, id = await setup.receive(raw_mail("Hello", ADA))
    await setup.database.run(pauses.pause(pauses.ALL, "to look around", setup.signed(), wall_clock()))
    action = await setup.ask(id, "forward", to=BEN)
    loaded = await setup.database.run(actions.load_action(action))
    payload = {
        "account_id": str(loaded.account_id),
        "action_id": str(action),
        "message_type": "forward",
        "original_message_id": str(id),
        "cc": ["evil@example.com"],
    }
    job = new_job(CATALOGUE, "outbound.send", payload)
    await setup.database.run(jobs.enqueue_many([job], wall_clock()))

    async def look() -> str | None:
        shown = await setup.database.run(jobs.show_job(job.id))
        return shown.last_error if shown is not None and shown.state == "failed" else None

    assert "another cc" in await setup._until(look)
    assert setup.sent() == []


async def payload_of(setup: SendingSetup, action: UUID) -> dict[str, Any]:
    """The payload of the job that sent the mail of this action."""
    found = await setup.database.run(jobs.list_jobs(type="outbound.send"))
    return next(each for each in (json.loads(job.payload_json) for job in found) if each["action_id"] == str(action))


async def test_the_job_that_forwards_names_everything_that_leaves_and_where_its_files_are(setup: SendingSetup) -> None:
    _, id = await setup.receive(with_attachment("Invoice", "invoice.pdf", b"%PDF-1.7 secret"))
    given = {"filename": "note.txt", "mime_type": "text/plain", "data": "U2VjcmV0"}
    done = await setup.do(id, "forward", to=BEN, cc=["cleo@example.com"], note="Please pay", attachments=[given])
    payload = await payload_of(setup, done.id)
    assert {name: payload[name] for name in payload if name != "account_id"} == {
        "action_id": str(done.id),
        "message_type": "forward",
        "original_message_id": str(id),
        "to": [BEN],
        "cc": ["cleo@example.com"],
        "body_plain": "Please pay",
        "attachments": [
            {"filename": "invoice.pdf", "mime_type": "application/pdf", "in": "original"},
            {"filename": "note.txt", "mime_type": "text/plain", "in": "action"},
        ],
    }


async def test_the_job_that_replies_names_its_recipient_and_its_conversation(setup: SendingSetup) -> None:
    _, id = await setup.receive(with_attachment("Invoice", "invoice.pdf", b"%PDF"))
    done = await setup.do(id, "auto_reply", text="Away", html="<p>Away</p>", subject="Out of office")
    payload = await payload_of(setup, done.id)
    stored = await setup.database.run(load_message(id))
    assert {name: payload[name] for name in payload if name not in ("account_id", "action_id")} == {
        "message_type": "reply",
        "original_message_id": str(id),
        "to": [ADA],
        "subject": "Out of office",
        "body_plain": "Away",
        "body_html": "<p>Away</p>",
        "thread_id": stored.provider_thread_id,
        "references": ["<one@example.com>"],
    }


def with_attachment(subject: str, name: str, content: bytes) -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"], mail["Message-ID"] = ADA, OWNER, subject, "<one@example.com>"
    mail.set_content("Anbei die Rechnung.")
    mail.add_alternative("<p>Anbei die Rechnung.</p>", subtype="html")
    mail.add_attachment(content, maintype="application", subtype="pdf", filename=name)
    return mail.as_bytes()


async def test_an_answer_with_html_has_both(setup: SendingSetup) -> None:
    _, id = await setup.receive(raw_mail("Hi", ADA))
    await setup.do(id, "auto_reply", text="Grüße 👋", html="<p>Grüße</p>", subject="Abwesend: über")
    _, mail = setup.one_sent()
    assert mail["Subject"] == "Abwesend: über"
    assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"]
    assert text_of(mail) == "Grüße 👋"


async def test_what_the_original_says_cannot_add_a_header_or_a_recipient(setup: SendingSetup) -> None:
    hidden = b64encode(b"Win\r\nBcc: eve@example.com\r\n\r\nbody").decode()
    raw = raw_mail(
        f"=?utf-8?b?{hidden}?=", ADA, Message_ID="<a\tb@example.com>", References="<x> =?utf-8?q?=0D=0AX:y?="
    )
    _, id = await setup.receive(raw)
    for action, parameters in (("forward", {"to": BEN}), ("auto_reply", {"text": "Bcc: eve@example.com"})):
        await setup.do(id, action, **parameters)
    assert len(setup.sent()) == 2
    for sent in setup.sent():
        mail = read(sent.mail.raw)
        assert mail["Bcc"] is None
        assert mail["X"] is None
        assert mail["To"] in (ADA, BEN)
        assert "Win Bcc: eve@example.com body" in mail["Subject"]


async def test_a_reply_to_is_followed_only_to_one_who_may_be_answered(setup: SendingSetup) -> None:
    _, id = await setup.receive(raw_mail("Hi", ADA, Reply_To=BEN))
    assert (await setup.do(id, "auto_reply", text="Away")).state == "completed"
    _, mail = setup.one_sent()
    assert mail["To"] == BEN
    _, other = await setup.receive(raw_mail("Hi again", ADA, Reply_To="list-request@example.com"))
    refused = await setup.do(other, "auto_reply", text="Away")
    assert refused.state == "canceled"
    assert "its sender is a program" in (refused.error or "")
    assert len(setup.sent()) == 1


@pytest.mark.parametrize(
    ("sender", "headers"),
    [
        ("mailer-daemon@example.com", {}),
        (ADA, {"Return_Path": "<>"}),
        (ADA, {"List_Id": "<chess.example.com>"}),
        (ADA, {"Precedence": "bulk"}),
        (ADA, {"Auto_Submitted": "auto-generated"}),
        (OWNER, {}),
    ],
)
async def test_no_machine_and_no_list_is_answered_even_if_it_was_decided_earlier(
    setup: SendingSetup, sender: str, headers: dict[str, str]
) -> None:
    """Safety refuses the decision; and an action that got past it is not sent either."""
    _, id = await setup.receive(raw_mail("Hi", sender, **headers))
    with pytest.raises(Refused):
        await setup.ask(id, "auto_reply", text="Away")
    action_id = await past_safety(setup, id, "auto_reply", {"text": "Away"})
    ended = await setup.ended(action_id)
    assert (ended.state, setup.sent()) == ("canceled", [])
    assert "not answered" in (ended.error or "")


async def past_safety(setup: SendingSetup, message_id: UUID, action: ActionType, parameters: dict[str, Any]) -> UUID:
    """As if it had been allowed when it was decided."""
    message = await setup.database.run(load_message(message_id))
    decision = decisions.Decision(new_id(), message.account_id, message.id, "none", action, parameters, 1.0, "a test")
    now = wall_clock()
    chosen, job = action_and_job(CATALOGUE, decision, Ruling("allow"), "user", now, APPROVAL_TIME, 50, "test")
    await setup.database.run(decisions.ask_for_action(decision, chosen, job, now))
    return chosen.id


async def test_a_sender_is_answered_once_in_a_while(either_setup: SendingSetup) -> None:
    setup = either_setup
    for number, state in ((1, "completed"), (2, "canceled")):
        _, id = await setup.receive(raw_mail(f"Hi {number}", ADA))
        done = await setup.do(id, "auto_reply", text="Away")
        assert done.state == state
    assert "was answered on" in (done.error or "")
    _, id = await setup.receive(raw_mail("Hi", BEN))
    assert (await setup.do(id, "auto_reply", text="Away")).state == "completed"
    assert len(setup.sent()) == 2


async def test_two_answers_to_one_sender_at_once_are_one(either_setup: SendingSetup) -> None:
    setup = either_setup
    ids = [(await setup.receive(raw_mail(f"Hi {number}", ADA)))[1] for number in range(4)]
    asked = [await setup.ask(id, "auto_reply", text="Away") for id in ids]
    states = [(await setup.ended(id)).state for id in asked]
    assert sorted(states) == ["canceled", "canceled", "canceled", "completed"]
    assert len(setup.sent()) == 1


async def test_what_was_forwarded_from_here_before_is_not_forwarded_again(setup: SendingSetup) -> None:
    _, id = await setup.receive(raw_mail("Fwd: Hi", ADA, X_Loop=f"{BEN}, {OWNER}"))
    done = await setup.do(id, "forward", to=BEN)
    assert done.state == "canceled"
    assert "loop" in (done.error or "")


async def test_mail_that_was_protected_meanwhile_is_not_sent(setup: SendingSetup) -> None:
    _, id = await setup.receive(raw_mail("Hi", ADA))
    await setup.database.run(pauses.pause(pauses.ALL, "a look", setup.signed(), wall_clock()))
    asked = await setup.ask(id, "forward", to=BEN)
    await setup.database.run(protection.protect("sender", ADA, "", setup.signed(), wall_clock()))
    await setup.database.run(pauses.resume(pauses.ALL, setup.signed(), wall_clock()))
    done = await setup.ended(asked)
    assert (done.state, setup.sent()) == ("canceled", [])
    assert "protected" in (done.error or "")


async def test_mail_that_was_just_given_a_protected_label_by_hand_is_not_sent(either_setup: SendingSetup) -> None:
    """The draft is there, and cannot be sent at first; meanwhile the label is put on in Gmail, and nobody told us."""
    setup, mailbox = either_setup, either_setup.product.mailbox
    message, id = await setup.receive(raw_mail("Hi", ADA))
    account = (await setup.database.run(load_message(id))).account_id
    legal = mailbox.labels.create("Legal", {}).id
    seen = [labels.SeenLabel(each.id, each.name, each.type) for each in mailbox.labels.all()]
    await setup.database.run(labels.sync_labels(account, seen, wall_clock()))
    await setup.database.run(protection.protect("label", "Legal", "", setup.signed(), wall_clock()))
    setup.product.emulator.faults.order(Fault(503, method="drafts.send", times=10_000))
    asked = await setup.ask(id, "forward", to=BEN)
    await setup.until_delivery("deferred")
    mailbox.modify(message.id, add=[legal])
    setup.product.emulator.faults.clear()
    done = await setup.ended(asked)
    assert (done.state, setup.sent()) == ("canceled", [])
    assert "'legal' is protected" in (done.error or "")
    await setup.until_no_draft()


async def test_the_kill_switch_stops_what_is_already_admitted(either_setup: SendingSetup) -> None:
    setup = either_setup
    _, id = await setup.receive(raw_mail("Hi", ADA))
    # The draft cannot be sent at first; meanwhile everything is stopped.
    setup.product.emulator.faults.order(Fault(503, method="drafts.send", times=10_000))
    asked = await setup.ask(id, "forward", to=BEN)
    await setup.until_delivery("deferred")
    await setup.database.run(pauses.pause(pauses.ALL, "a look", setup.signed(), wall_clock()))
    waiting = await setup.until_delivery("queued", "deferred")
    setup.product.emulator.faults.clear()
    assert (waiting.paused, setup.sent()) == ("a look", [])
    await setup.database.run(pauses.resume(pauses.ALL, setup.signed(), wall_clock()))
    assert (await setup.ended(asked)).state == "completed"
    assert len(setup.sent()) == 1
    await setup.until_no_draft()


@pytest.mark.parametrize("method", ["drafts", "drafts/send"])
async def test_a_lost_answer_leads_to_no_second_mail_and_no_stray_draft(setup: SendingSetup, method: str) -> None:
    _, id = await setup.receive(raw_mail("Hi", ADA))
    setup.product.emulator.faults.order(Fault(kind="drop_reply", path=f"/{method}", times=1))
    assert (await setup.do(id, "forward", to=BEN)).state == "completed"
    assert len(setup.sent()) == 1
    await setup.until_no_draft()
    (delivery,) = await setup.database.run(outbound.list_mail(1))
    assert delivery.attempts == 2
    assert delivery.sent_message_id == setup.sent()[0].id


async def test_a_mail_nobody_can_tell_the_fate_of_is_not_sent_again_until_a_person_says_so(setup: SendingSetup) -> None:
    """The answer is lost, and the user deletes the sent copy before it is looked for."""
    _, id = await setup.receive(raw_mail("Hi", ADA))
    mailbox, left = setup.product.mailbox, [1]

    def delete_once(change: Change) -> None:
        if change.kind == "messageAdded" and "SENT" in change.labels and left:
            left.clear()
            mailbox.delete(change.message_id)

    mailbox.observers.append(delete_once)
    setup.product.emulator.faults.order(Fault(kind="drop_reply", path="/drafts/send", times=1))
    asked = await setup.ask(id, "forward", to=BEN)
    unknown = await setup.until_delivery("unknown")
    view = await setup.until_action(asked, lambda view: view.error is not None)
    assert view.state == "executing"
    assert f"postroom outbound resolve {unknown.id}" in (view.error or "")
    assert setup.sent() == []
    await setup.database.run(outbound_answers.resolve_mail(unknown.id, "not_sent", setup.signed(), wall_clock()))
    done = await setup.ended(asked)
    assert (done.state, done.error, len(setup.sent())) == ("completed", None, 1)


async def test_a_refused_recipient_bounces_and_fails_the_action(setup: SendingSetup) -> None:
    _, id = await setup.receive(raw_mail("Hi", ADA))
    setup.product.emulator.faults.order(Fault(400, "invalidArgument", method="drafts.send"))
    done = await setup.do(id, "forward", to=BEN)
    assert done.state == "failed"
    assert "400 invalidArgument" in (done.error or "")
    await setup.until_no_draft()
    assert setup.sent() == []
    (delivery,) = await setup.database.run(outbound.list_mail(1))
    assert delivery.state == "bounced"


async def test_a_scope_that_was_not_granted_is_reported_at_the_action_which_waits(setup: SendingSetup) -> None:
    _, id = await setup.receive(raw_mail("Hi", ADA))
    setup.product.emulator.faults.order(Fault(403, "insufficientPermissions", method="drafts.create", times=10_000))
    asked = await setup.ask(id, "forward", to=BEN)
    view = await setup.until_action(asked, lambda view: view.error is not None)
    assert view.state == "executing"
    assert "the level send" in (view.error or "")
    setup.product.emulator.faults.clear()
    assert (await setup.ended(asked)).state == "completed"


async def test_files_that_are_too_large_are_left_out_and_that_is_reported(
    setup: SendingSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.outbound.queue.attachments.LARGEST_TOGETHER", 1000)
    _, id = await setup.receive(with_attachment("Big", "big.pdf", b"x" * 1001))
    assert (await setup.do(id, "forward", to=BEN)).state == "completed"
    _, mail = setup.one_sent()
    assert list(mail.iter_attachments()) == []
    assert "1 attachments are not sent along: too large" in text_of(mail)


async def test_a_message_that_is_gone_cannot_be_forwarded(setup: SendingSetup) -> None:
    message, id = await setup.receive(raw_mail("Hi", ADA))
    setup.product.mailbox.delete(message.id)
    done = await setup.do(id, "forward", to=BEN)
    assert done.state == "failed"
    assert "deleted" in (done.error or "")


async def test_a_rule_that_a_token_wrote_decides_about_no_mail_before_a_person_has_confirmed_it(
    setup: SendingSetup,
) -> None:
    draft = RuleDraft("to ben", {"sender_email": ADA}, "forward", {"to": BEN})
    by_token = Signature(new_id(), "token:7", "admin")
    await setup.database.run(rules.keep_rules([(new_id(), draft)], "refuse", "user", by_token, wall_clock()))
    await setup.receive(raw_mail("Before", ADA))
    assert await setup.database.run(actions.list_actions(10)) == []
    rule = await setup.database.run(rules.load_rule("to ben"))
    await setup.database.run(rules.confirm_rule(rule.id, draft.content_hash, setup.signed(), wall_clock()))
    _, after = await setup.receive(raw_mail("After", ADA))
    [decided] = await setup.database.run(actions.list_actions(10))
    assert (decided.message_id, decided.action_type, decided.rule_name) == (after, "forward", "to ben")
