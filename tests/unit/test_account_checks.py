"""The doctor's checks of accounts: what passes, what fails, the remedy, and no secrets."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from postroom.core.actions.action import ACTION_TYPES, DecidedType
from postroom.core.lifecycle import AccountState
from postroom.core.mail.account_repair import repair_for
from postroom.core.rules.rule import Rule
from postroom.mailboxes.gmail.oauth import GoogleAppRefused
from postroom.mailboxes.gmail.scopes import LEVELS, Level
from postroom.operations.accounts import account_checks as checks
from postroom.operations.accounts.account_checks import Known
from postroom.operations.installation.checks import Check
from postroom.store.accounts.accounts import AccountView, Consent
from postroom.store.accounts.secret_keys import KeyUse
from postroom.store.engine.ids import new_id
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.intake.connectors import ConnectorView, last_reports
from postroom.store.mail.mail import keep_account
from postroom.vault.keys import KeyFile
from postroom.vault.sealing import Vault
from support.shell import Shell

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
APP = "123-abc.apps.googleusercontent.com"
SECRET = "GOCSPX-kanarienvogel-0123"
MARA = "gmail:user:mara@lindqvist.example"


def consent(level: Level = "organise", dies_in: timedelta | None = None) -> Consent:
    dies_at = None if dies_in is None else NOW + dies_in
    return Consent(APP, level, frozenset(LEVELS[level]), NOW, dies_at=dies_at)


def account(state: AccountState = "active", given: Consent | None = None, reason: str | None = None) -> AccountView:
    id, email = UUID(int=7), MARA.rpartition(":")[2]
    return AccountView(id, "gmail", MARA, email, state, reason, NOW, NOW, given, acts_from=NOW)


def rule(action: DecidedType, **changes: Any) -> Rule:
    return replace(Rule(new_id(), f"to {action}", "global", None, 100, {}, action, {}), **changes)


def connector(heard: timedelta = timedelta(), **changes: Any) -> ConnectorView:
    plain = ConnectorView("gmail", MARA, "host", "1", "healthy", None, 1.0, {}, None, NOW, NOW - heard, NOW - heard)
    return replace(plain, **changes)


def known(*accounts: AccountView, rules: tuple[Rule, ...] = (), heard: ConnectorView | None = None) -> Known:
    return Known(accounts, rules, {} if heard is None else {heard.endpoint_identity: heard}, (), APP)


def of_accounts(given: Known) -> list[tuple[str, str, str]]:
    found = checks.account_checks(given, NOW)
    assert all(bool(check.remedy) == (check.verdict != "ok") for check in found)
    return [(check.name, check.verdict, check.remedy) for check in found]


def of_connectors(given: Known) -> list[Check]:
    return checks.connector_checks(given, NOW, contacts_stale_s=3600)


# The app at Google.


@pytest.mark.parametrize(
    ("client_id", "secret", "verdict"),
    [
        (None, None, "ok"),
        (APP, SECRET, "ok"),
        (APP, None, "fail"),
        (None, SECRET, "fail"),
        ("my-app", SECRET, "fail"),
        (APP, APP, "fail"),
        (APP, "kanarienvogel", "fail"),
        (APP, f" {SECRET}", "fail"),
        (SECRET, APP, "fail"),
    ],
)
def test_the_app_has_an_id_and_a_secret_and_each_is_in_its_place(
    client_id: str | None, secret: str | None, verdict: str
):
    found = checks.google_app(client_id, secret, is_google=True)
    assert found.verdict == verdict
    assert "kanarienvogel" not in found.found + found.remedy


def test_the_emulator_takes_any_app():
    assert checks.google_app("app", "short", is_google=False).verdict == "ok"


@pytest.mark.parametrize(
    ("address", "verdict"),
    [
        ("https://gmail.googleapis.com", "ok"),
        ("http://127.0.0.1:8026", "ok"),
        ("http://[::1]:8026", "ok"),
        ("http://localhost", "ok"),
        ("http://gmail.googleapis.com", "fail"),
        ("http://127.0.0.1.evil.example", "fail"),
    ],
)
def test_what_leaves_the_machine_is_encrypted(address: str, verdict: str):
    assert checks.encryption_check({"gmail.base_url": address}).verdict == verdict


def test_the_page_to_which_google_sends_the_browser_back_can_be_served():
    assert checks.redirect().verdict == "ok"


# Keys.


def used(id: str, secrets: int = 1) -> KeyUse:
    return KeyUse(id, NOW, None, secrets)


def test_every_key_that_seals_something_has_to_be_here(tmp_path: Path):
    vault = Vault(tmp_path)
    assert checks.key_check(vault, []).verdict == "ok"
    key = KeyFile(tmp_path).add(NOW)
    assert checks.key_check(vault, [used(key.id), used("gone", secrets=0)]).verdict == "ok"
    found = checks.key_check(vault, [used(key.id), used("0123456789ab")])
    assert (found.verdict, "0123456789ab" in found.found) == ("fail", True)


def test_a_key_file_that_others_may_read_or_nobody_can_is_refused_without_showing_it(tmp_path: Path):
    file, key = KeyFile(tmp_path).path, KeyFile(tmp_path).add(NOW)
    content = file.read_text()
    file.chmod(0o640)
    shared = checks.key_check(Vault(tmp_path), [used(key.id)])
    assert (shared.verdict, "640" in shared.found, "chmod 600" in shared.remedy) == ("fail", True, True)
    file.chmod(0o600)
    file.write_text(content[:-20])
    broken = checks.key_check(Vault(tmp_path), [used(key.id)])
    assert broken.verdict == "fail"
    secret = content.split('"key": "')[1][:20]
    assert secret not in str([shared, broken])


# Accounts.


def test_an_account_in_use_is_as_it_should_be():
    assert of_accounts(known(account(given=consent()))) == [("account", "ok", "")]
    assert of_accounts(known(account("removed"))) == []


def test_an_account_without_consent_comes_with_the_command_that_renews_it():
    [(_, verdict, remedy)] = of_accounts(known(account("needs_consent", consent("send"), "Google ended it")))
    assert verdict == "fail"
    assert remedy == "run `postroom account add gmail --email mara@lindqvist.example --level send`"


def test_an_account_whose_app_was_refused_comes_with_what_helps_there():
    reason = repair_for(str(GoogleAppRefused("invalid_client")), "mara@lindqvist.example")
    [found] = checks.account_checks(known(account("needs_consent", consent(), reason)), NOW)
    assert found == Check(
        "account", "fail", "mara@lindqvist.example: Google does not accept the app (invalid_client)",
        "check google.client_id and google.client_secret against the app in the Google Cloud console, "
        "then run `postroom account resume mara@lindqvist.example`",
    )  # fmt: skip


def test_a_paused_account_comes_with_the_command_that_resumes_it():
    [(_, verdict, remedy)] = of_accounts(known(account("paused", consent(), "on holiday")))
    assert (verdict, "postroom account resume mara@lindqvist.example" in remedy) == ("warn", True)


@pytest.mark.parametrize(("dies_in", "verdict"), [(3, "ok"), (2, "warn"), (-1, "warn")])
def test_a_consent_in_testing_is_told_of_two_days_before_it_dies(dies_in: int, verdict: str):
    [(_, said, remedy)] = of_accounts(known(account(given=consent(dies_in=timedelta(days=dies_in)))))
    assert said == verdict
    assert ("Publish app" in remedy) == (verdict == "warn")


def test_a_consent_to_another_app_is_reported():
    given = replace(known(account(given=consent())), client_id=None)
    assert [verdict for _, verdict, _ in of_accounts(given)] == ["fail"]


@pytest.mark.parametrize(
    ("level", "action", "needed"),
    [
        ("read", "archive", "organise"),
        ("organise", "archive", None),
        ("organise", "forward", "send"),
        ("organise", "auto_reply", "send"),
        ("send", "delete", "full"),
        ("full", "delete", None),
        ("read", "none", None),
    ],
)
def test_rules_that_need_more_than_was_consented_to_are_named(level: Level, action: DecidedType, needed: str | None):
    found = of_accounts(known(account(given=consent(level)), rules=(rule(action),)))[1:]
    assert [(name, verdict) for name, verdict, _ in found] == ([] if needed is None else [("level", "fail")])
    assert all(f"--level {needed}`" in remedy for _, _, remedy in found)


def test_rules_that_do_not_act_on_the_account_need_nothing():
    idle = (
        rule("delete", shadow=True),
        rule("delete", scope="account", scope_ref=str(UUID(int=8))),
    )
    assert len(of_accounts(known(account(given=consent("read")), rules=idle))) == 1


def test_one_command_is_enough_for_all_rules_that_lack_something():
    lacking = tuple(rule(action) for action in ACTION_TYPES)
    found = checks.account_checks(known(account(given=consent("read")), rules=lacking), NOW)[1:]
    assert len(found) == 1
    assert "--level full`" in found[0].remedy
    assert f"and {len(ACTION_TYPES) - 3} more" in found[0].found


def test_an_account_that_does_not_act_yet_comes_with_the_command_that_begins():
    waiting = replace(account(given=consent()), acts_from=None)
    [_, (name, verdict, remedy)] = of_accounts(known(waiting))
    assert (name, verdict) == ("acting", "warn")
    assert "postroom account act mara@lindqvist.example --from now" in remedy


def test_an_address_cannot_smuggle_a_command_into_the_remedy():
    hostile = replace(account("needs_consent"), email="a$(reboot)@b")
    [(_, _, remedy)] = of_accounts(known(hostile))
    assert "'a$(reboot)@b'" in remedy


# Connectors.


@pytest.mark.parametrize(("minutes", "verdict"), [(1, "ok"), (3, "warn"), (60, "warn")])
def test_a_connector_that_has_fallen_silent_is_reported(minutes: int, verdict: str):
    found = of_connectors(known(account(), heard=connector(timedelta(minutes=minutes))))
    assert [check.verdict for check in found] == [verdict]


def test_an_account_that_nobody_watches_is_reported_unless_it_rests():
    assert [check.verdict for check in of_connectors(known(account()))] == ["warn"]
    for state in ("paused", "needs_consent", "removed"):
        silent = known(account(state), heard=connector(timedelta(days=1)))
        assert of_connectors(silent) == []


def test_a_connector_in_trouble_says_so():
    [found] = of_connectors(known(account(), heard=connector(state="degraded", error="quota")))
    assert (found.verdict, found.found) == ("warn", f"{MARA}: degraded: quota")


@pytest.mark.parametrize(("minutes", "names"), [(60, []), (61, ["contacts"])])
def test_contacts_that_are_too_old_to_be_used_are_reported(minutes: int, names: list[str]):
    made = {"contacts_generated_at": (NOW - timedelta(minutes=minutes)).isoformat()}
    _, *found = of_connectors(known(account(), heard=connector(checkpoint=made)))
    assert [check.name for check in found if check.verdict == "warn"] == names


def test_messages_that_were_refused_or_set_aside_are_counted():
    counters = {"refused": 1200, "set_aside": 3}
    _, *found = of_connectors(known(account(), heard=connector(counters=counters)))
    remedy = (
        "`postroom connector refused` lists them with the reason; "
        "`postroom connector retry --account mara@lindqvist.example --all` tries them again"
    )
    aside = f"{MARA}: 3 messages are set aside because the mailbox does not return them; they are tried again"
    assert found == [
        Check("refused", "warn", f"{MARA}: 1,200 messages were refused", remedy),
        Check("set aside", "warn", aside, remedy),
    ]


def test_of_several_instances_the_one_that_was_heard_last_counts():
    old, new = connector(timedelta(days=3), instance_id="old"), connector(instance_id="new")
    assert last_reports([new, old]) == last_reports([old, new]) == {MARA: new}


def test_the_doctor_creates_no_database(shell: Shell):
    (shell.folder / "postroom-data").mkdir()
    shell("doctor", "--json")
    (found,) = [row for row in shell.json() if row["name"] == "database"]
    assert (found["verdict"], found["found"]) == ("warn", "not created yet")
    assert list((shell.folder / "postroom-data").iterdir()) == []


def test_the_doctor_shows_all_of_it(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("POSTROOM_GOOGLE_CLIENT_ID", APP)
    assert shell("migrate") == 0

    async def connect() -> None:
        database = SqliteDatabase(shell.folder / "postroom-data" / "postroom.sqlite3")
        await database.run(keep_account(UUID(int=7), "gmail", MARA, "mara@lindqvist.example", NOW))
        await database.close()

    asyncio.run(connect())
    assert shell("doctor", "--json") == 1
    found = {row["name"]: row for row in shell.json()}
    assert found["google app"]["found"] == "google.client_secret is not set"
    verdicts = {name: found[name]["verdict"] for name in ("secret keys", "account", "connector", "addresses")}
    assert verdicts == {"secret keys": "ok", "account": "ok", "connector": "warn", "addresses": "ok"}
