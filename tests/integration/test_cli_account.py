"""`postroom account` and `postroom key`: from the first consent to the last key, without a secret on the screen."""

import base64
import io
import os
import re
import stat
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.mailboxes.gmail.scopes import COMPOSE, MODIFY, PUBSUB
from postroom.mailboxes.oauth.loopback import FINISHED
from postroom_sandbox.faults import Fault
from support.google import ADA, BOB, Google, agreeing_browser, google_in_a_thread
from support.patience import PATIENCE_S
from support.shell import Shell, with_empty_database

SECRET = re.compile(r"1//0|ya29\.|sandbox-secret")


@pytest.fixture(scope="module")
def running() -> Iterator[Google]:
    with google_in_a_thread() as google:
        yield google


@pytest.fixture
def google(running: Google, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Google:
    """Google, in the settings; its user agrees to everything."""
    for name, value in running.settings().items():
        monkeypatch.setenv(name, value)
    behaviour = running.emulator.consents.behaviour
    behaviour.deny, behaviour.testing, behaviour.withheld = False, False, frozenset()
    running.emulator.consents.grants.clear()
    return running


@pytest.fixture
def pages(google: Google, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the user saw in the browser at the end."""
    seen: list[str] = []
    monkeypatch.setattr(webbrowser, "open", agreeing_browser(seen))
    return seen


def add(shell: Shell, *arguments: str) -> dict[str, Any]:
    assert shell("account", "add", "gmail", "--json", *arguments) == 0, shell.err
    return shell.json()[0]


def test_a_mailbox_is_connected_through_the_browser(shell: Shell, pages: list[str]) -> None:
    assert shell("account", "add", "gmail") == 0
    assert re.fullmatch(rf"{ADA}  connected with level organise  \([0-9a-f-]{{36}}\)\n", shell.out)
    assert "https://" not in shell.out
    assert "Google asks for your consent at this address" in shell.err
    assert not SECRET.search(shell.out + shell.err)
    (page,) = pages
    assert FINISHED in page
    key_file = shell.folder / "postroom-data" / "keys.json"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600


def test_the_list_shows_state_and_consent_and_no_secret(shell: Shell, pages: list[str]) -> None:
    account = add(shell, "--email", BOB, "--level", "send")
    assert (account["email"], account["state"], account["level"]) == (BOB, "active", "send")
    assert account["scopes"] == sorted([MODIFY, COMPOSE])
    assert shell("account", "list", "--json") == 0
    assert shell.json() == [account]
    assert shell("account", "list") == 0
    assert shell.out.splitlines()[0].split()[:4] == ["ID", "PROVIDER", "EMAIL", "STATE"]
    assert not SECRET.search(shell.out)


@pytest.mark.parametrize("whole", [True, False])
def test_without_a_browser_the_user_pastes_the_address_or_the_code(
    shell: Shell, google: Google, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """The question is printed before the answer is read: standard input goes to Google when it is asked."""
    monkeypatch.setattr(webbrowser, "open", lambda _url: pytest.fail("a browser was opened"))  # type: ignore[reportUnknownLambdaType]
    printed: list[str] = []
    monkeypatch.setattr("typer.echo", lambda text="", **_more: printed.append(str(text)))  # type: ignore[reportUnknownLambdaType]

    class Elsewhere(io.StringIO):
        def readline(self, _size: int | None = -1, /) -> str:
            url = next(word for text in printed for word in text.split() if word.startswith("http"))
            location = httpx2.get(url, timeout=PATIENCE_S).headers["location"]
            return (location if whole else str(httpx2.URL(location).params["code"])) + "\n"

    monkeypatch.setattr("sys.stdin", Elsewhere())
    assert shell("account", "add", "gmail", "--no-browser", "--email", ADA) == 0, printed
    assert any("connected with level organise" in text for text in printed)


def test_the_same_address_twice_renews_the_one_account_and_says_so(shell: Shell, pages: list[str]) -> None:
    account = add(shell)
    assert "already" not in shell.err
    for arguments in (("--email", "ADA@example.com"), ()):
        assert add(shell, *arguments)["id"] == account["id"]
        told = f"{ADA} is already connected ({account['id']}, active, level organise): its consent is renewed"
        assert told in shell.err
    wider = add(shell, "--email", ADA, "--level", "full")
    assert (wider["id"], wider["level"]) == (account["id"], "full")
    assert shell("account", "list", "--json") == 0
    assert len(shell.json()) == 1


def test_a_renewal_keeps_the_level_unless_another_is_named(shell: Shell, pages: list[str]) -> None:
    account = add(shell, "--level", "full")
    assert add(shell, "--email", ADA)["level"] == "full"
    assert shell("account", "add", "gmail") == 1
    assert f"{ADA} is already connected with level full, and this consent allows less" in shell.err
    assert f"`postroom account add gmail --email {ADA}`" in shell.err
    assert shell("account", "list", "--json") == 0
    assert [(row["id"], row["level"]) for row in shell.json()] == [(account["id"], "full")]
    assert add(shell, "--level", "read")["level"] == "read"


def test_where_hints_are_pulled_pubsub_is_asked_for_beside_the_level(
    shell: Shell, pages: list[str], google: Google, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTROOM_GMAIL_PUBSUB_SUBSCRIPTION", "projects/home/subscriptions/ada")
    assert add(shell)["scopes"] == sorted([MODIFY, PUBSUB])
    google.emulator.consents.behaviour.withheld = frozenset({PUBSUB})
    assert add(shell, "--email", ADA)["scopes"] == [MODIFY]
    assert f"pulling gmail.pubsub_subscription needs {PUBSUB}, and {ADA} has granted {MODIFY}" in shell.err
    assert f"`postroom account add gmail --email {ADA} --level organise`" in shell.err
    monkeypatch.setenv("POSTROOM_GMAIL_PUBSUB_KEY_FILE", "key.json")
    add(shell, "--email", ADA)
    assert PUBSUB not in shell.err


def test_whoever_consents_as_someone_else_is_reported(
    shell: Shell, google: Google, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = agreeing_browser([])
    monkeypatch.setattr(webbrowser, "open", lambda url: browser(url.replace("login_hint=bob", "login_hint=ada")))  # type: ignore[reportUnknownLambdaType]
    assert shell("account", "add", "gmail", "--email", BOB) == 1
    assert f"the consent is for {ADA}, not for {BOB}" in shell.err
    assert shell("account", "list", "--json") == 0
    assert shell.json() == []


def test_a_no_leaves_nothing_behind(shell: Shell, pages: list[str], google: Google) -> None:
    google.emulator.consents.behaviour.deny = True
    assert shell("account", "add", "gmail") == 1
    assert "access_denied" in shell.err
    assert shell("account", "list", "--json") == 0
    assert shell.json() == []


def test_less_than_asked_and_an_app_in_testing_are_reported(shell: Shell, pages: list[str], google: Google) -> None:
    google.emulator.consents.behaviour.withheld = frozenset({COMPOSE})
    google.emulator.consents.behaviour.testing = True
    account = add(shell, "--level", "send")
    assert account["level"] == "organise"
    assert f"what was requested needs {COMPOSE} (the level send), and {ADA} has granted {MODIFY}" in shell.err
    assert f"`postroom account add gmail --email {ADA} --level send`" in shell.err
    assert '"Testing"' in shell.err
    assert account["dies_at"] is not None


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("pop",), "use gmail or imap"),
        (("gmail", "--level", "everything"), "use one of read, organise, send, full"),
        (("gmail", "--email", "nobody"), "ada@example.com"),
        ((), "PROVIDER"),
    ],
)
def test_what_cannot_be_connected_is_refused(
    shell: Shell, pages: list[str], arguments: tuple[str, ...], remedy: str
) -> None:
    assert shell("account", "add", *arguments) == 2
    assert remedy in shell.err
    assert pages == []


def test_without_an_app_at_google_the_page_that_explains_it_is_named(shell: Shell) -> None:
    assert shell("account", "add", "gmail") == 2
    assert "google.client_id" in shell.err
    assert "docs/how-to/connect-gmail.md" in shell.err
    assert list(shell.folder.iterdir()) == []


def test_an_account_is_paused_resumed_and_removed_by_address_or_id(
    shell: Shell, pages: list[str], google: Google
) -> None:
    account = add(shell)
    assert shell("account", "pause", ADA.upper(), "--reason", "on holiday") == 0
    assert shell.out == f"{ADA}  paused\n"
    assert shell("account", "list", "--json") == 0
    assert (shell.json()[0]["state"], shell.json()[0]["state_reason"]) == ("paused", "on holiday")
    assert shell("account", "resume", account["id"]) == 0
    assert shell("account", "list") == 0
    assert "in use" in shell.out, "people read the words of the pages; programs get the state"
    for _ in range(2):
        assert shell("account", "resume", account["id"], "--json") == 0
        assert shell.json()[0]["state"] == "active"
    for _ in range(2):
        assert shell("account", "remove", ADA) == 0
        assert (shell.out, shell.err) == (f"{ADA}  removed\n", "")
    assert [grant.revoked for grant in google.emulator.consents.grants] == [True]
    assert shell("account", "resume", ADA) == 2
    assert "postroom account add gmail" in shell.err
    assert add(shell)["id"] == account["id"]
    assert shell("audit", "list", "--json") == 0
    moves = [row["action"] for row in reversed(shell.json()) if row["object_type"] == "account"]
    assert moves == ["account.connect", "account.pause", "account.resume", "account.remove", "account.connect"]


def test_a_removal_that_google_does_not_hear_of_still_wipes_and_says_what_is_left_to_do(
    shell: Shell, pages: list[str], google: Google
) -> None:
    add(shell)
    google.emulator.faults.order(Fault(kind="reset", path="/revoke"))
    assert shell("account", "remove", ADA) == 0
    assert "myaccount.google.com" in shell.err
    assert shell("account", "list", "--json") == 0
    assert (shell.json()[0]["state"], shell.json()[0]["level"]) == ("removed", None)


def test_an_account_that_does_not_exist_says_where_to_look(shell: Shell) -> None:
    assert shell("migrate") == 0
    for command in ("pause", "resume", "remove"):
        assert shell("account", command, "nobody@example.com") == 1
        assert "`postroom account list`" in shell.err


def test_keys_are_listed_rotated_and_dropped_and_never_shown(shell: Shell, pages: list[str]) -> None:
    add(shell)
    add(shell, "--email", BOB)
    key_file = shell.folder / "postroom-data" / "keys.json"
    assert shell("key", "list", "--json") == 0
    (first,) = shell.json()
    assert (first["source"], first["seals"], first["secrets"]) == ("file", True, 2)
    assert first["created_at"] is not None
    assert shell("key", "rotate", "--json") == 0
    (done,) = shell.json()
    assert (done["resealed"], done["unopened"], done["dropped"]) == (2, [], [])
    assert shell("key", "list", "--json") == 0
    assert [(row["id"], row["seals"], row["secrets"]) for row in shell.json()] == [
        (done["key"], True, 2),
        (first["id"], False, 0),
    ]
    keys = [text for text in key_file.read_text().split('"') if len(text) == 44]
    assert shell("key", "rotate", "--drop-old") == 0
    assert shell.out.splitlines()[1:] == [f"{done['key']}  dropped", f"{first['id']}  dropped"]
    assert shell("key", "list") == 0
    assert len(re.findall("not here", shell.out)) == 2
    for text in (*keys, *(text for text in key_file.read_text().split('"') if len(text) == 44)):
        assert text not in shell.out
    assert shell("account", "remove", ADA) == 0
    assert shell.err == ""


def test_keys_move_from_the_file_to_the_setting(
    shell: Shell, pages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(shell)
    text = base64.b64encode(os.urandom(32)).decode()
    monkeypatch.setenv("POSTROOM_SECRET_KEY", text)
    assert shell("key", "rotate", "--drop-old", "--json") == 0
    (done,) = shell.json()
    assert (done["resealed"], len(done["dropped"])) == (1, 1)
    assert shell("key", "list", "--json") == 0
    assert [(row["source"], row["secrets"]) for row in shell.json()] == [("setting", 1), ("not here", 0)]
    assert text not in shell.out
    assert shell("settings") == 0
    assert text not in shell.out
    monkeypatch.delenv("POSTROOM_SECRET_KEY")
    assert shell("account", "add", "gmail", "--email", BOB) == 1
    assert f"the key {done['key']}" in shell.err


def test_a_secret_that_does_not_open_stops_the_dropping_of_its_key(
    shell: Shell, pages: list[str], tmp_path: Path
) -> None:
    add(shell)
    key_file = shell.folder / "postroom-data" / "keys.json"
    key_file.rename(tmp_path / "lost.json")
    assert shell("key", "rotate", "--drop-old") == 1
    assert "cannot be decrypted: connect it again" in shell.err
    assert "dropped" not in shell.out


@pytest.mark.parametrize("value", ["kanarienvogel", "a,b", ","])
def test_a_wrong_key_in_the_settings_is_refused_without_being_quoted(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("POSTROOM_SECRET_KEY", value)
    assert shell("key", "list") == 2
    assert "openssl rand -base64 32" in shell.err
    assert "kanarienvogel" not in shell.err


def test_keys_of_a_database_without_a_schema_ask_for_the_migration(shell: Shell) -> None:
    with_empty_database(shell)
    for command in (("key", "list"), ("key", "rotate"), ("account", "list")):
        assert shell(*command) == 1
        assert "run `postroom migrate`" in shell.err
    assert not (shell.folder / "postroom-data" / "keys.json").exists()
