"""Real mail from end to end: `make sample MAIL=folder` gives the folder; every file in it is one message."""

import json
import os
import random
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from postroom.core.actions.safety import Policy
from postroom.core.actions.steps import shown
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.files import MailFile
from postroom.core.mail.ingestion import DEFAULT_POLICY
from postroom.core.mail.mime import parse_message
from postroom.core.mail.tiers import Known, assign_tier, assign_tier_from_raw, sender_address
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.starter import drafts_of, starters
from postroom.interfaces.cli import run
from postroom.operations.preview.arrivals import IncomingMessage, Recipient, read_history
from postroom.operations.preview.preview import Previewer, PreviewRules
from postroom.operations.preview.preview_mail import recipient_of
from postroom.operations.preview.preview_rules import rules_of
from postroom.store.actions import decisions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.jobs.job_builders import decide_again
from postroom.store.mail.mail import account_of
from postroom.store.mail.simulation import MessageSelection, PastMessage
from postroom.store.people.audit import Signature
from postroom.store.rules import rules
from postroom.system.wall_clock import wall_clock
from postroom.triage.decide.simulate import (
    ForeseenDecision,
    SimulatedPair,
    SimulatedRules,
    load_context,
    needed_by,
    replay,
)
from postroom.triage.decide.simulated import ChangeOfRules
from postroom_sandbox.mailbox import Mailbox
from support.mutations import mutated
from support.product import ENDPOINT, OWNER, running_product, until_job
from support.shell import RecordingApplication

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
SECONDS = 2.0
MUTATED = 10_000


def messages() -> list[Path]:
    folder = os.environ.get("POSTROOM_SAMPLE_MAIL")
    if not folder:
        pytest.fail("name a folder of messages: make sample MAIL=folder")
    return sorted(path for path in Path(folder).rglob("*") if path.is_file())


def user_and_known(raws: list[bytes]) -> tuple[str, Known]:
    """Whoever is written to most is the user; every tenth sender is a contact."""
    from postroom.core.mail.addresses import addresses
    from postroom.core.mail.headers import values

    messages = [parse_message(raw).headers for raw in raws]
    to = Counter(address for headers in messages for value in values(headers, "to") for address in addresses(value))
    senders = sorted({sender_address(headers) for headers in messages} - {""})
    user = to.most_common(1)[0][0]
    return user, Known.of([user], senders[::10])


async def test_every_real_message_reaches_a_decision(database: Database, tmp_path: Path) -> None:
    paths = messages()

    def deliver(mailbox: Mailbox) -> None:
        for path in paths:
            mailbox.deliver(path.read_bytes())

    async with running_product(database, tmp_path, prepare=deliver, patience_s=300) as product:
        await product.rule("lists", {"header_match": {"name": "List-Id"}}, "archive")
        await product.rule("questions", {"subject_contains": "?"}, "apply_label", label="Questions")
        assert await product.live.sync() == len(paths)
        rows = await product.settled(len(paths))
    failed = [row.action_error for row in rows if row.action_state == "failed"]
    assert not failed
    tiers = {tier: sum(row.tier == tier for row in rows) for tier in {row.tier for row in rows}}
    acted = sum(row.action_state == "completed" for row in rows)
    print(f"\n{len(rows)} messages decided, {acted} acted on, by tier: {tiers}")


async def test_what_a_simulation_foresees_for_real_mail_is_what_the_rules_then_decide(
    database: Database, tmp_path: Path
) -> None:
    paths = messages()

    def deliver(mailbox: Mailbox) -> None:
        for path in paths:
            mailbox.deliver(path.read_bytes())

    change = [
        RuleDraft("files", {"has_attachment": True}, "star", priority=1),
        RuleDraft("paid", {"or": [{"body_contains": "invoice"}, {"subject_contains": "receipt"}]}, "archive"),
        RuleDraft("away", {"subject_regex": r"^(re|aw):"}, "auto_reply", {"text": "Away."}, priority=50),
        RuleDraft("lists", {"list_id": "."}, "apply_label", {"label": "Lists"}),
    ]
    foreseen: dict[UUID, ForeseenDecision] = {}
    async with running_product(database, tmp_path, prepare=deliver, patience_s=300) as product:
        await product.rule("lists", {"header_match": {"name": "List-Id"}}, "archive")
        assert await product.live.sync() == len(paths)
        await product.settled(len(paths))
        stored = await database.run(rules.list_rules())
        setting = await load_context(database, Policy(), False, wall_clock())
        before = [view.rule for view in stored]
        after = ChangeOfRules(change).applied_to(stored)
        worlds = SimulatedPair(SimulatedRules(before, setting), SimulatedRules(after, setting))

        def tell(past: PastMessage, now: ForeseenDecision, then: ForeseenDecision) -> None:
            foreseen[past.message.id] = then
            if now.summary != then.summary:
                changed[now.summary, then.summary] += 1

        changed: Counter[tuple[str, str]] = Counter()
        wanted = MessageSelection(LONG_AGO, len(paths))
        assert await replay(database, worlds, wanted, needed_by(before, after), tell) == len(paths)
        signed = Signature(new_id(), "test", "admin")
        drafts = [(new_id(), draft) for draft in change]
        await database.run(rules.keep_rules(drafts, "replace", "user", signed, wall_clock()))
        account = await database.run(account_of(ENDPOINT))
        again = [decide_again(CATALOGUE, account.id, id, 2) for id in foreseen]
        await database.run(jobs.enqueue_many(again, wall_clock()))
        for job in again:
            await until_job(database, job.id, "completed")
    for id, then in foreseen.items():
        decision = (await database.run(decisions.decisions_about(id)))[0].decision
        assert (decision.source, decision.rule_name, decision.action_type, decision.safety) == (
            then.source,
            then.rule_name,
            then.action_type,
            then.safety,
        )
    print(f"\n{len(foreseen)} decisions foreseen; changed: {changed.most_common(8)}")


def plain(subject: str) -> str:
    """The subject in ASCII: the emulator guesses other charsets for raw bytes than the parser does."""
    return " ".join(subject.encode("ascii", "ignore").decode().split())


async def test_what_a_preview_foresees_for_real_mail_is_what_the_product_does(
    database: Database, tmp_path: Path
) -> None:
    paths = messages()
    drafts = drafts_of(starters())
    raws = [path.read_bytes() for path in paths]
    incoming = [IncomingMessage(MailFile(str(number), raw)) for number, raw in enumerate(raws)]
    # Nobody is a contact there either: nothing was ever sent from that mailbox.
    recipient = recipient_of(read_history(incoming), [OWNER], frozenset(), DEFAULT_POLICY)
    previewer = Previewer(PreviewRules(rules_of(drafts), Policy()), recipient, wall_clock())
    for each in incoming:
        previewer.add(each)
    foreseen = [
        (row.sender or "unknown", plain(row.subject), " + ".join(row.rules), row.action)
        for row in previewer.finish()
        if row.result != "own"
    ]

    def deliver(mailbox: Mailbox) -> None:
        for raw in raws:
            mailbox.deliver(raw)

    async with running_product(database, tmp_path, prepare=deliver, patience_s=300, policy=DEFAULT_POLICY) as product:
        await database.run(rules.add_rules([(new_id(), draft) for draft in drafts], wall_clock()))
        await product.live.sync()
        rows = await product.until_decided(len(foreseen))
    done = [
        (
            row.sender,
            plain(row.subject),
            row.rule_name or "",
            shown(row.action_type or "none", row.parameters),
        )
        for row in rows
    ]
    assert Counter(done) == Counter(foreseen)
    print(f"\n{len(done)} decisions foreseen by a preview: {Counter(each[-1] for each in done).most_common(6)}")


def test_every_real_message_is_previewed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = messages()
    user, known = user_and_known([path.read_bytes() for path in paths])
    contacts = tmp_path / "contacts.csv"
    contacts.write_text("Email\n" + "\n".join(sorted(known.contacts)) + "\n", "utf-8")
    arguments = ["preview", os.environ["POSTROOM_SAMPLE_MAIL"], "--user", user, "--contacts", str(contacts), "--json"]
    with pytest.raises(SystemExit) as ended:
        run(RecordingApplication(), arguments)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ended.value.code == 0
    assert sorted(line["path"] for line in lines) == sorted(map(str, paths))
    with capsys.disabled():
        print(
            f"\npreview of {len(lines)} for {user}:", Counter(line["assignment_rule"] for line in lines).most_common()
        )
        print(Counter(line["problem"] for line in lines if line["problem"]).most_common(5))


def test_raw_bytes_give_every_real_message_the_tier_that_its_headers_give() -> None:
    raws = [path.read_bytes() for path in messages()]
    _, known = user_and_known(raws)
    for raw in raws:
        assert assign_tier_from_raw(raw, known) == assign_tier(parse_message(raw).headers, known)


def test_every_mutation_of_real_mail_is_accounted_for_in_time() -> None:
    raws = [path.read_bytes() for path in messages()]
    user, known = user_and_known(raws)
    chosen = PreviewRules(rules_of(drafts_of(starters())), Policy())
    previewer = Previewer(chosen, Recipient(user, known), LONG_AGO)
    seed = random.randrange(10**9)
    rng = random.Random(seed)
    slowest, problems = 0.0, 0
    for number in range(MUTATED):
        raw = mutated(rng, raws)
        started = time.process_time()
        previewer.add(IncomingMessage(MailFile(str(number), raw)))
        seen = previewer.rows[number]
        slowest = max(slowest, time.process_time() - started)
        problems += seen.problem is not None
        assert slowest < SECONDS, f"seed {seed}, message {number}"
        assert "cannot be read" not in (seen.problem or ""), f"seed {seed}, message {number}"
        assert assign_tier_from_raw(raw, known) == (seen.policy_tier, seen.assignment_rule), f"seed {seed}, {number}"
    print(f"\n{MUTATED} mutated messages (seed {seed}): slowest {slowest * 1000:.0f} ms, {problems} with a problem")
