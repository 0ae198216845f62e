"""`postroom rules starter`: listed with what each would have done, shown, and added."""

from pathlib import Path

import pytest

from postroom.core.mail.ingestion import DEFAULT_POLICY
from postroom.core.rules.documents import read_documents
from postroom.core.rules.starter import drafts_of, starters
from postroom.operations.caller import Caller
from postroom.operations.rules.starter_rules import add_starters, list_starters
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs.jobs import list_jobs
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import wall_clock
from support.product import running_product
from support.shell import Shell
from support.written_mail import MESSAGES


def test_a_new_installation_lists_them_and_creates_nothing(shell: Shell, tmp_path: Path) -> None:
    assert shell("rules", "starter", "list") == 0
    assert shell.out.count("(off); the last 7 days: no mail yet") == len(starters())
    assert not (tmp_path / "postroom-data").exists()


def test_what_is_shown_is_a_file_of_rules(shell: Shell) -> None:
    assert shell("rules", "starter", "show", "all") == 0
    assert read_documents(shell.out) == drafts_of(starters())
    assert shell.out.startswith("# Security alerts: Sign-ins, changed passwords")
    assert shell("rules", "starter", "show", "travel", "--json") == 0
    [shown] = shell.json()
    assert [rule["name"] for rule in shown["rules"]] == ["Travel"]


def test_adding_is_safe_to_repeat_and_leaves_changed_rules_alone(shell: Shell) -> None:
    assert shell("rules", "starter", "add", "newsletters", "security") == 0
    assert shell.out == "Security alerts  added\nNewsletters  added\n"
    assert shell("rules", "edit", "Newsletters", "--then", "mark_read") == 0
    assert shell("rules", "starter", "add", "newsletters", "travel") == 0
    assert shell.out == "Travel  added\nNewsletters  left as it is\n"
    assert shell("rules", "list", "--json") == 0
    assert [(rule["name"], rule["action"]) for rule in shell.json()][-1] == ("Newsletters", "mark_read")
    assert shell("rules", "starter", "list", "--json") == 0
    assert {each["name"] for each in shell.json() if each["chosen"] == "yes"} == {"security", "travel", "newsletters"}


@pytest.mark.parametrize(("name", "says"), [("newsleters", "did you mean 'newsletters'"), ("x", "use one of security")])
def test_an_unknown_name_is_refused(shell: Shell, name: str, says: str) -> None:
    assert shell("rules", "starter", "add", name) == 2
    assert says in shell.err


async def test_each_is_listed_with_what_it_would_have_done_to_stored_mail(sqlite: Database, tmp_path: Path) -> None:
    async with running_product(sqlite, tmp_path, policy=DEFAULT_POLICY) as product:
        await product.live.sync()
        for number, mail in enumerate(MESSAGES):
            product.mailbox.deliver(mail.raw(number))
        await product.live.sync()
        await product.until_decided(len(MESSAGES))
    settings = Settings.model_validate({"data_dir": tmp_path})
    before = len(await sqlite.run(list_jobs(None, None, 1_000)))
    found = {view.name: view for view in await list_starters(sqlite, settings, wall_clock)}
    assert len(await sqlite.run(list_jobs(None, None, 1_000))) == before, "nothing is decided again"
    assert {view.mail for view in found.values()} == {len(MESSAGES)}
    assert (found["security"].matched, found["security"].leave_inbox) == (7, 0)
    assert (found["calendar"].matched, found["calendar"].leave_inbox) == (4, 2)
    assert found["newsletters"].leave_inbox >= 2
    assert {view.chosen for view in found.values()} == {"no"}
    await add_starters(Caller(sqlite, Signature(new_id(), "test", "admin")), ["people"])
    assert [view.name for view in await list_starters(sqlite, settings, wall_clock) if view.chosen == "yes"] == [
        "people"
    ]
