"""One database in which every text that a stranger may write is hostile, made by the product's own verbs.

A text meets every field: the fields of one row have texts that stand apart in the list, and each field goes through
all of them.
"""

import contextlib
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

from postroom.core.actions.action import action_hash
from postroom.core.errors import PostroomError
from postroom.core.mail.ingestion import parse_rule
from postroom.core.mail.message import read_mail
from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.queue.envelope import envelope_text, parse_envelope
from postroom.core.queue.queues import EMAIL
from postroom.core.rules.draft import RuleDraft, read_draft
from postroom.core.rules.learning import RuleSuggestion
from postroom.intake.intake import LARGEST_BATCH
from postroom.operations.caller import Caller
from postroom.operations.people.audit import Signature, signature
from postroom.operations.people.people import add_person
from postroom.operations.people.tokens import make_token
from postroom.settings.reading import Settings
from postroom.store.actions import decisions, protection
from postroom.store.actions.pauses import pause
from postroom.store.engine.database import Database, Script, transaction
from postroom.store.engine.ids import new_id
from postroom.store.intake import acceptance, inbox
from postroom.store.intake.ingestion_rules import add_ingestion_rule
from postroom.store.mail import labels, mail
from postroom.store.outbound import destinations, suppressions
from postroom.store.outbound.outbound import MailSender, NewMail, lease_mail
from postroom.store.outbound.outbound_recipients import Attempt, RecipientChange, record_outcomes
from postroom.store.rules.proposals import proposing
from postroom.store.rules.rules import keep_rules
from postroom.system.wall_clock import wall_clock
from support.clocks import ManualClock
from support.hostile_text import storable
from support.intake_pages import IntakeSetup
from support.smtp_sending import new_mail, queue_mail
from support.store.inbox_setup import event
from support.store.job_setup import JobSetup
from support.store.mail_setup import MailSetup, Sample

APART = 29
"""How far apart the texts of one row stand; it has no factor in common with their number."""
LEASE = timedelta(minutes=10)
MOST_NAMED = 190
"""The length of a text where a name is bounded: a rule's, a label's."""


@dataclass
class HostileHouse:
    database: Database
    data_dir: Path
    texts: Sequence[str]
    pages: list[str] = field(default_factory=list[str])
    """Addresses that show the texts, besides those of the navigation."""
    accepted: int = 0
    refused: int = 0

    def __post_init__(self) -> None:
        self.clock = ManualClock(wall_clock())
        self.box = MailSetup(JobSetup(self.database, self.clock))
        self.intake = IntakeSetup(self.database, self.data_dir, self.clock)

    def text(self, number: int, place: int = 0, most: int = 0) -> str:
        """The text of a field: `number` is the row, `place` the field in it."""
        found = storable(self.texts[(number + APART * place) % len(self.texts)])
        return found[:most] if most else found

    def signed(self, number: int) -> Signature:
        return signature(f"person:{self.text(number, 3, 60)}", "admin", self.text(number, 4, 400))

    async def try_to(self, done: Awaitable[object]) -> None:
        """A field may refuse what cannot be a name or an address; what it accepts is shown."""
        try:
            await done
            self.accepted += 1
        except PostroomError:
            self.refused += 1

    async def begin(self) -> None:
        """Connect the mailbox."""
        await self.intake.connect()
        await self.box.opened()

    async def fill(self) -> None:
        await self.begin()
        await self._mail()
        await self._approvals()
        await self._rules()
        await self._events()
        await self._jobs()
        await self._connectors()
        await self._outgoing()
        await self._house()

    async def _mail(self) -> None:
        samples = [self._sample(number) for number in range(len(self.texts))]
        found = [labels.SeenLabel(f"Label_{n}", self.text(n, 5, 200), "user") for n in range(len(self.texts))]
        await self.database.run(labels.sync_labels(self.box.account.id, found, self.clock()))
        await self.arrive(*samples)
        self.pages += [f"/mail/{self.box.ids['m0']}", f"/mail?kind=mail&open={self.box.ids['m1']}"]

    async def arrive(self, *samples: Sample) -> None:
        """Mail is accepted and stored, all of it at once."""
        run, now, news = self.database.run, self.clock(), list[mail.NewMessage]()
        await run(acceptance.accept_many([_routed(each, self.box.endpoint) for each in samples], now))
        (leased, _) = await run(inbox.lease(EMAIL, len(samples), new_id(), now, new_id()))
        for each in leased:
            content, id = read_mail(each.envelope), new_id()
            self.box.ids[each.envelope.event.external_event_id] = id
            news.append(mail.NewMessage(each, self.box.account, (new_id(), id), content, id, self.box._classifying))
        await run(mail.store_messages(news, now))

    def _sample(self, number: int) -> Sample:
        files = [{"filename": self.text(n, 2), "size": 10, "mime_type": "text/plain"} for n in range(len(self.texts))]
        whole = number < 2
        return Sample(
            f"m{number}",
            f"s{number}@x.example",
            self.text(number),
            "\n".join(storable(each)[:300] for each in self.texts) if whole else self.text(number, 6),
            frozenset({"INBOX", *(f"Label_{n}" for n in (range(len(self.texts)) if whole else (number,)))}),
            {
                "From": f"{self.text(number, 1, 200)} <s{number}@x.example>",
                "Cc": self.text(number, 7, 900),
                "List-Id": self.text(number, 8, 900),
            },
            files=tuple(files if whole else files[number : number + 1]),
        )

    async def _approvals(self) -> None:
        now = self.clock()
        for number in range(len(self.texts)):
            wanted = {"text": self.text(number, 2)} if number % 2 else {"label": self.text(number, 5, 200)}
            action: Any = "auto_reply" if number % 2 else "apply_label"
            message = self.box.ids[f"m{number}"]
            safety = {"verdict": "approve", "reasons": [self.text(number, 9, 400)]}
            why = self.text(number, 4, 400)
            decision = decisions.Decision(
                new_id(), self.box.account.id, message, "none", action, wanted, 1.0, why, safety=safety
            )
            hashed = action_hash(message, action, wanted)
            agent = f"token:{self.text(number, 3, 60)}"
            new = decisions.NewAction(
                new_id(), "agent", "approved_pending", hashed, None, now + timedelta(hours=24), asked_by=agent
            )
            await self.database.run(decisions.ask_for_action(decision, new, None, now))

    async def _rules(self) -> None:
        drafts = [(new_id(), self._draft(number)) for number in range(len(self.texts))]
        signed, now = self.signed(0), self.clock()
        await self.database.run(keep_rules(drafts, "replace", "user", signed, now))
        self.pages += [f"/rules/{drafts[number][0]}" for number in (0, 1)]
        proof = {"kind": "taken_back", "messages": [], "count": 3, "did": "archive"}
        suggested = [RuleSuggestion(self.box.account.id, draft, proof) for _, draft in drafts[:10]]
        await self.database.run(_propose(suggested, now))
        for number in range(len(self.texts)):
            rule = {"number": 100 + number, "kind": "header_contains", "header": "X-Tag", "tier": "skip"}
            with contextlib.suppress(PostroomError):
                read = parse_rule(rule | {"name": self.text(number, 0, 120), "value": self.text(number, 1, 400)})
                await self.try_to(self.database.run(add_ingestion_rule(read, self.signed(number), now)))

    def _draft(self, number: int) -> RuleDraft:
        """A rule as a person writes it; what may not be a label, a name or a condition is left out."""
        rule: dict[str, Any] = {"name": f"rule {number}", "if": {"sender_domain": "x.example"}, "then": "apply_label"}
        rule |= {"parameters": {"label": "Receipts"}, "description": self.text(number, 6, 900)}
        if number % 3 == 0:
            rule |= {"enabled": False, "disabled_reason": self.text(number, 4, 400)}
        condition = "subject_contains" if number % 2 else "list_id"
        hostile = {
            "name": f"{number} {self.text(number, 0, MOST_NAMED)}",
            "if": {condition: self.text(number, 1, 400)},
            "parameters": {"label": self.text(number, 5, 200)},
        }
        for name, value in hostile.items():
            with contextlib.suppress(PostroomError):
                read_draft(rule | {name: value})
                rule[name] = value
        return read_draft(rule)

    async def _events(self) -> None:
        events = [self._event(number) for number in range(len(self.texts))]
        for start in range(0, len(events), LARGEST_BATCH):
            outcomes = await self.intake.inbox.batch(*events[start : start + LARGEST_BATCH])
            self.refused += sum(isinstance(each, PostroomError) for each in outcomes)
        self.pages.append("/queues?queue=gateway")

    def _event(self, number: int) -> dict[str, Any]:
        """An event; what may not be an identity or a kind is left out."""
        parts: dict[str, Any] = {"payload": {"normalized_text": self.text(number), "raw": {}}}
        hostile = {
            "sender": {"identity": self.text(number, 1, 200)},
            "event": {"kind": self.text(number, 2, 100)},
            "source": {"endpoint_identity": self.text(number, 3, 200)},
        }
        for name, part in hostile.items():
            with contextlib.suppress(PostroomError):
                parse_envelope(event(number, **{name: part}))
                parts[name] = part
        return event(number, **parts)

    async def _jobs(self) -> None:
        made = await self.intake.failed(*(self.text(number, 0, 900) for number in range(len(self.texts))))
        payload = {self.text(number, 0, 60): self.text(number, 1, 300) for number in range(len(self.texts))}
        (odd,) = await self.intake.failed(self.text(2), payload=payload)
        self.pages += ["/jobs?stage=failed", f"/jobs/{made[0]}", f"/jobs/{odd}"]
        await self.intake.count()

    async def _connectors(self) -> None:
        await self.intake.report(state="degraded", error_message=self.text(0, 1, 900), counters={"ingested": 1})
        for number in range(len(self.texts)):
            identity, type = self.text(number, 0, 200), self.text(number, 1, 60)
            await self.try_to(self.intake.report(identity, "redis-stream", error_message=self.text(number, 2, 900)))
            await self.try_to(self.intake.report(f"odd-{number}", type, error_message=self.text(number, 3, 900)))
            email, endpoint = self.text(number, 4, 200), f"gmail:user:{self.text(number, 5, 200)}"
            await self.database.run(mail.keep_account(new_id(), "gmail", endpoint, email, self.clock()))
        self.intake.refuse(*(self.text(n, 0, 60) for n in range(40)), reason=self.text(8, 2, 400))
        self.pages += [
            "/connectors/gmail/gmail:user:mara@lindqvist.example",
            *(f"/connectors/redis-stream/{quote(self.text(n, 0, 200), safe='')}" for n in (6, 44)),
        ]

    async def _outgoing(self) -> None:
        now, run, mails = self.clock(), self.database.run, dict[UUID, int]()
        news: list[NewMail] = []
        for number in range(len(self.texts)):
            tenant, name = self.text(number, 0, 200) or "t", self.text(number, 1, 100)
            sender = MailSender(
                tenant, f"d{number}.example", f"{name}@d{number}.example", f"s{number}@d{number}.example"
            )
            new = replace(
                new_mail(f"r{number}@{self.text(number, 2, 60)}.example", sender=sender), subject=self.text(number, 3)
            )
            news.append(new)
            mails[new.id] = number
        await run(queue_mail(news, now))
        leased = await run(lease_mail(new_id(), len(news), now, now + LEASE))
        attempts = [
            Attempt(
                each.hold,
                [
                    RecipientChange(
                        0,
                        news[mails[each.id]].recipients[0].address,
                        "bounced",
                        self.text(mails[each.id], 4),
                        None,
                        BounceClass.HARD,
                    )
                ],
            )
            for each in leased[: len(leased) // 2]
        ]
        await run(record_outcomes(attempts, now))
        for number in range(len(self.texts)):
            tenant = self.text(number, 0, 200)
            await self.try_to(run(suppressions.suppress(tenant, f"s{number}@x.example", self.signed(number), now)))
            await self.try_to(run(destinations.pause_destination(self.text(number, 2, 200), self.signed(number), now)))
        self.pages += [f"/outbound/{news[n].id}" for n in (0, 1)]
        self.pages += [f"/outbound?tenant={quote(self.text(n, 0, 200), safe='')}" for n in (6, 44)]

    async def _house(self) -> None:
        now: datetime = self.clock()
        settings = Settings.model_validate({"data_dir": self.data_dir})
        for number in range(len(self.texts)):
            text = self.text(number, 0, 200)
            reason = self.text(number, 1, 400)
            await self.try_to(
                self.database.run(protection.protect("label", text, reason, self.signed(number), wall_clock()))
            )
            await self.try_to(add_person(Caller(self.database, self.signed(number)), settings, text[:60], "viewer"))
            by = Caller(self.database, self.signed(number), lambda: now)
            await self.try_to(make_token(by, "agent", name=text[:120]))
        await self.database.run(pause("all", self.text(1, 0, 300), self.signed(1), now))
        self.pages += [
            f"/{page}={quote(self.text(number), safe='')}"
            for number, page in ((0, "mail?q"), (7, "audit?actor"), (30, "audit?action"), (44, "jobs?error"))
        ]


def _routed(sample: Sample, endpoint: str) -> acceptance.RoutedEnvelope:
    envelope = sample.envelope(endpoint)
    return acceptance.RoutedEnvelope(new_id(), envelope, envelope_text(envelope), EMAIL, EMAIL.tier_of(envelope))


@transaction
def _propose(suggested: Sequence[RuleSuggestion], now: datetime) -> Script[None]:
    yield from proposing(suggested, now)
