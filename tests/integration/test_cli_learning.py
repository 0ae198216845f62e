"""`postroom simulate`, `shadow` and `proposals` on the command line."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from postroom.core.rules.draft import RuleDraft
from postroom.store.engine.opening import FILE
from postroom.store.engine.sqlite import SqliteDatabase
from support.clocks import ManualClock
from support.shell import Shell
from support.sqlite import copy_sqlite
from support.store.job_setup import JobSetup
from support.store.mail_setup import MailSetup, Sample

RULES = "rules: [{name: shops, if: {sender_domain: shop.example}, then: apply_label, parameters: {label: Travel}}]"
DARK = RuleDraft("dark", {"sender_domain": "shop.example"}, "archive", shadow=True)


@pytest.fixture
def inhabited(shell: Shell, migrated_sqlite: Path) -> Callable[[Callable[[MailSetup], Awaitable[None]]], None]:
    """Fills the database that the commands then find."""
    folder = shell.folder / "postroom-data"
    copy_sqlite(migrated_sqlite, folder)

    def fill(live: Callable[[MailSetup], Awaitable[None]]) -> None:
        async def living() -> None:
            database = SqliteDatabase(folder / FILE)
            await live(await MailSetup(JobSetup(database, ManualClock())).opened())
            await database.close()

        asyncio.run(living())

    return fill


Inhabited = Callable[[Callable[[MailSetup], Awaitable[None]]], None]


def written(shell: Shell, text: str) -> str:
    path = shell.folder / "rules.yaml"
    path.write_text(text)
    return str(path)


async def some_mail(mail_setup: MailSetup) -> None:
    await mail_setup.rules(RuleDraft("offers", {"subject_contains": "offer"}, "trash"))
    await mail_setup.decide(Sample("a", subject="an offer\x1b[2J"), Sample("b"), Sample("c", "x@y.example"))


def test_a_change_of_rules_is_simulated_before_it_is_made(shell: Shell, inhabited: Inhabited) -> None:
    inhabited(some_mail)
    assert shell("simulate", written(shell, RULES), "--without", "offers") == 0
    assert shell.out.splitlines()[0] == "3 messages replayed; 2 would be decided differently"
    assert "stay → apply_label Travel" in shell.out
    assert "[offers → shops]" in shell.out
    assert "\x1b" not in shell.out
    assert shell("simulate", written(shell, RULES), "--json") == 0
    [found] = shell.json()
    assert (found["messages"], found["changed"], found["model_cost_cents"]) == (3, 1, None)
    assert found["after"]["by_rule"] == {"offers": 1, "shops": 1}
    assert shell("rules", "list", "--json") == 0
    assert [rule["name"] for rule in shell.json()] == ["offers"], "nothing was changed"


def test_the_cost_is_reported_by_the_price_when_the_model_was_never_asked(
    shell: Shell, inhabited: Inhabited, monkeypatch: pytest.MonkeyPatch
) -> None:
    inhabited(some_mail)
    for name, value in (("PROVIDER", "openai"), ("NAME", "own"), ("BASE_URL", "http://127.0.0.1:1/v1")):
        monkeypatch.setenv(f"POSTROOM_MODEL_{name}", value)
    monkeypatch.setenv("POSTROOM_MODEL_INPUT_CENTS_PER_MILLION", "100")
    monkeypatch.setenv("POSTROOM_MODEL_OUTPUT_CENTS_PER_MILLION", "0")
    assert shell("simulate", "--without", "offers", "--json") == 0
    [found] = shell.json()
    assert (found["before"]["model_calls"], found["after"]["model_calls"]) == (2, 3)
    assert found["model_cost_cents"] == 0.25
    assert shell("simulate", "--without", "offers") == 0
    assert "model calls: +1, +0.25 cents (by the price, at 2,500 tokens a call)" in shell.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "got no change to simulate"),
        (["--replace"], "needs a file"),
        (["--without", "nobody"], "there is no rule 'nobody'"),
        (["missing.yaml"], "cannot be read"),
        (["--without", "offers", "--since", "soon"], "is not a time"),
        (["--without", "offers", "--account", "nobody@x.example"], "nobody@x.example"),
    ],
)
def test_what_cannot_be_simulated_is_reported_in_one_line(
    shell: Shell, inhabited: Inhabited, arguments: list[str], told: str
) -> None:
    inhabited(some_mail)
    assert shell("simulate", *arguments) in (1, 2)
    assert told in shell.err
    assert len(shell.err.splitlines()) == 1


async def compared(mail_setup: MailSetup) -> None:
    await mail_setup.rules(DARK)
    await mail_setup.decide(*(Sample(id, subject=id) for id in ("same", "other", "untouched")))
    await mail_setup.user("same", remove="INBOX")
    await mail_setup.user("other", "TRASH", "INBOX")


def test_what_a_rule_decided_in_shadow_is_shown_beside_what_the_user_did(shell: Shell, inhabited: Inhabited) -> None:
    inhabited(compared)
    assert shell("shadow", "list", "--json") == 0
    [row] = shell.json()
    assert (row["kind"], row["name"], row["decisions"], row["precision"]) == ("rule", "dark", 3, 0.5)
    assert shell("shadow", "report", "--rule", "dark", "--json") == 0
    [report] = shell.json()
    assert (report["agreed"], report["disagreed"], report["undecided"]) == (1, 1, 1)
    samples = [(each["subject"], each["agreed"], each["you"]) for each in report["samples"]]
    assert samples == [("other", False, "moved it to the trash"), ("same", True, "archived it")]
    assert shell("shadow", "report", "--rule", "dark") == 0
    assert "not proven yet: only 2 of its 3 decisions" in shell.err


def test_how_the_user_answered_a_decision_is_explained(shell: Shell, inhabited: Inhabited) -> None:
    ids: dict[str, object] = {}

    async def answered(mail_setup: MailSetup) -> None:
        await compared(mail_setup)
        ids.update(mail_setup.ids)

    inhabited(answered)
    told = {
        "same": {"agreed": True, "you": "archived it"},
        "other": {"agreed": False, "you": "moved it to the trash"},
        "untouched": {"agreed": None, "you": None},
    }
    for name, answer in told.items():
        assert shell("actions", "explain", str(ids[name]), "--json") == 0
        [dark] = [each for each in shell.json()[0]["decisions"] if each["shadow"]]
        assert {key: dark[key] for key in answer} == answer


def test_a_rule_leaves_the_shadow_with_a_warning_when_little_speaks_for_it(shell: Shell, inhabited: Inhabited) -> None:
    inhabited(compared)
    assert shell("shadow", "end", "--rule", "dark") == 0
    assert shell.out == "the rule 'dark' acts now\n"
    assert "warning: only 2 of its 3 decisions could be compared" in shell.err
    assert "warning: you acted differently in 1 of 2 cases" in shell.err
    assert shell("rules", "list", "--json") == 0
    assert shell.json()[0]["mode"] == "active"
    assert shell("shadow", "end", "--rule", "dark") == 0
    assert shell.out == "the rule 'dark' is not in shadow\n"
    assert shell("shadow", "begin", "--rule", "dark", "--json") == 0
    assert shell.json() == [{"kind": "rule", "name": "dark", "result": "decides in shadow now", "doubts": []}]


async def of_a_category(mail_setup: MailSetup) -> None:
    mail_setup.setup.clock.now = datetime.now(UTC)
    await mail_setup.rules(RuleDraft("all", {"has_attachment": False}, "archive"))
    await mail_setup.decide(Sample("a", "x@y.example", "Your flight"), Sample("b", "x@y.example", "Something else"))
    await mail_setup.user("a", remove="INBOX")


def test_categories_and_the_model_run_in_shadow_too(shell: Shell, inhabited: Inhabited) -> None:
    assert shell("shadow", "begin", "--category", "travel") == 0
    assert shell("shadow", "begin", "--model") == 0
    assert shell("shadow", "begin", "--model") == 0
    assert shell.out == "the model is in shadow already\n"
    inhabited(of_a_category)
    assert shell("shadow", "list", "--json") == 0
    assert [(row["kind"], row["decisions"], row["agreed"]) for row in shell.json()] == [
        ("category", 1, 1),
        ("model", 0, 0),
    ]
    assert shell("shadow", "report", "--category", "travel", "--json") == 0
    assert shell.json()[0]["precision"] == 1.0
    assert shell("shadow", "end", "--category", "travel") == 0
    assert shell("shadow", "end", "--model") == 0
    assert shell("shadow", "list") == 0
    assert len(shell.out.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["begin"], "needs exactly one scope"),
        (["report", "--rule", "dark", "--model"], "needs exactly one scope"),
        (["begin", "--category", "travle"], "did you mean 'travel'?"),
        (["report", "--rule", "nobody"], "there is no rule 'nobody'"),
    ],
)
def test_a_wrong_question_about_shadows_is_told_what_to_ask(
    shell: Shell, inhabited: Inhabited, arguments: list[str], told: str
) -> None:
    inhabited(compared)
    assert shell("shadow", *arguments) in (1, 2)
    assert told in shell.err


async def by_hand(mail_setup: MailSetup) -> None:
    for number in range(3):
        await mail_setup.decide(Sample(str(number)))
        await mail_setup.user(str(number), remove="INBOX")


def test_a_proposal_is_listed_shown_and_accepted_into_the_shadow(shell: Shell, inhabited: Inhabited) -> None:
    inhabited(by_hand)
    assert shell("proposals", "list", "--json") == 0
    [row] = shell.json()
    assert (row["name"], row["then"], row["count"]) == ("Archive mail from ida@shop.example", "archive", 3)
    assert shell("proposals", "show", row["id"]) == 0
    assert "sender_email: ida@shop.example" in shell.out
    assert shell("proposals", "accept", row["id"]) == 0
    assert shell.out == "Archive mail from ida@shop.example  decides in shadow now\n"
    assert shell("rules", "list", "--json") == 0
    assert [(rule["origin"], rule["mode"]) for rule in shell.json()] == [("learned", "shadow")]
    assert shell("proposals", "accept", row["id"]) == 2
    assert "it was accepted already" in shell.err
    assert shell("proposals", "list", "--json") == 0
    assert shell.json() == []


def test_a_dismissed_proposal_is_kept_as_such(shell: Shell, inhabited: Inhabited) -> None:
    inhabited(by_hand)
    assert shell("proposals", "list", "--json") == 0
    [row] = shell.json()
    assert shell("proposals", "dismiss", row["id"], "--reason", "I like to see them") == 0
    assert shell("proposals", "list", "--state", "all", "--json") == 0
    assert shell.json()[0]["state"] == "dismissed"
    assert shell("proposals", "list", "--state", "closed") == 2
    assert "use one of open, accepted, dismissed, all" in shell.err


def test_an_accepted_proposal_may_act_at_once(shell: Shell, inhabited: Inhabited) -> None:
    inhabited(by_hand)
    assert shell("proposals", "list", "--json") == 0
    assert shell("proposals", "accept", shell.json()[0]["id"], "--active", "--json") == 0
    assert shell.json()[0]["mode"] == "active"
