"""The key file of a service account: what is accepted, and the errors for unusable ones."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from postroom.core.errors import SettingsError
from postroom.mailboxes.gmail.following.hints import NEEDS_A_PERSON
from postroom.mailboxes.gmail.scopes import PUBSUB
from postroom.mailboxes.gmail.service_account import KeyRefused, ServiceAccountKeyFile, service_account_tokens
from support.service_keys import ROBOT, key_fields, private_key, write_key
from support.shell import Shell

SETTING = "gmail.pubsub_key_file"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
LOOPBACK = "http://127.0.0.1:8026/token"


def test_a_key_file_signs_a_statement_that_the_key_proves(tmp_path: Path) -> None:
    account = ServiceAccountKeyFile(write_key(tmp_path / "key.json", key_fields()), SETTING).read()
    key = RSAKey.import_key(private_key().public_key())  # pyright: ignore[reportUnknownMemberType]
    statement = jwt.decode(account.statement([PUBSUB], NOW), key)
    assert (statement.header["alg"], statement.header["kid"]) == ("RS256", "f00d")
    issued = int(NOW.timestamp())
    assert statement.claims == {
        "iss": ROBOT,
        "scope": PUBSUB,
        "aud": "https://oauth2.googleapis.com/token",
        "iat": issued,
        "exp": issued + 3600,
    }


def test_what_a_key_file_holds_is_never_shown(tmp_path: Path) -> None:
    account = ServiceAccountKeyFile(write_key(tmp_path / "key.json", key_fields()), SETTING).read()
    assert "PRIVATE" not in repr(account)
    assert "key=" not in repr(account)


def nothing(path: Path) -> None:
    pass


def folder(path: Path) -> None:
    path.mkdir()


def text(content: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.touch(mode=0o600)
        path.write_text(content)

    return write


def fields(mode: int = 0o600, **changes: Any) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        write_key(path, key_fields(**changes), mode)

    return write


@pytest.mark.parametrize(
    ("make", "problem", "remedy"),
    [
        (nothing, "cannot be read .No such file", "correct the path"),
        (folder, "cannot be read|readable by others", ""),
        (fields(0o640), r"readable by others than its owner .mode 640", "chmod 600 .*key.json"),
        (fields(0o604), r"readable by others than its owner .mode 604", "create a new key"),
        (text("{"), "not a key file of a service account", "Service accounts, Keys"),
        (text("[]"), "not a key file of a service account", "as JSON"),
        (fields(type="authorized_user"), "not a key file of a service account", "as JSON"),
        (fields(client_email=7), "not a key file of a service account", "as JSON"),
        (fields(token_uri="https://evil.example/token"), "token endpoint that is not Google's", "as Google made it"),
        (fields(token_uri="http://oauth2.googleapis.com/token"), "token endpoint that is not Google's", "token_uri"),
        (
            fields(private_key="-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----"),
            "cannot be read",
            "new key",
        ),
    ],
)
def test_a_key_file_that_cannot_be_used_names_the_setting_and_what_to_do(
    tmp_path: Path, make: Callable[[Path], None], problem: str, remedy: str
) -> None:
    path = tmp_path / "key.json"
    make(path)
    with pytest.raises(
        SettingsError, match=rf"^gmail\.pubsub_key_file: .*key\.json .*({problem}).*; .*{remedy}"
    ) as wrong:
        ServiceAccountKeyFile(path, SETTING).read()
    assert "BEGIN" not in str(wrong.value)
    assert "evil" not in str(wrong.value)


def test_a_token_endpoint_that_the_settings_name_is_trusted_too(tmp_path: Path) -> None:
    path = write_key(tmp_path / "key.json", key_fields(token_uri=LOOPBACK))
    assert ServiceAccountKeyFile(path, SETTING, [LOOPBACK]).read().token_url == LOOPBACK


def test_the_doctor_looks_at_the_key_file(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_key(tmp_path / "key.json", key_fields())
    monkeypatch.setenv("POSTROOM_GMAIL_PUBSUB_KEY_FILE", str(path))
    assert shell("migrate") == 0
    shell("doctor", "--json")
    assert ("ok", f"signs as {ROBOT}") in [(row["verdict"], row["found"]) for row in shell.json()]
    path.chmod(0o644)
    assert shell("doctor", "--json") == 1
    (wrong,) = [row for row in shell.json() if row["name"] == "pubsub key"]
    assert wrong["verdict"] == "fail"
    assert "chmod 600" in wrong["remedy"]


@pytest.mark.parametrize(
    ("status", "said", "remedy"),
    [
        (400, "invalid_grant", f"check the clock, or put the file of a new key into {SETTING}"),
        (401, "invalid_client", f"put the key file of an existing account into {SETTING}"),
        (401, "unauthorized_client", f"put the key file of an account .* into {SETTING}"),
        (400, "invalid_scope", f"enable the Cloud Pub/Sub API .* into {SETTING}"),
        (401, "deleted_client", f"put the key file of an existing account into {SETTING}"),
    ],
)
async def test_what_google_refuses_for_good_is_reported_with_its_word_and_what_helps_about_the_key(
    tmp_path: Path, status: int, said: str, remedy: str
) -> None:
    path = write_key(tmp_path / "key.json", key_fields())
    answering = httpx2.MockTransport(lambda _request: httpx2.Response(status, json={"error": said}))
    async with httpx2.AsyncClient(transport=answering) as http:
        tokens = service_account_tokens(http, ServiceAccountKeyFile(path, SETTING), [PUBSUB], lambda: NOW)
        with pytest.raises(KeyRefused, match=rf"the key of {ROBOT} \({said}\): .*; {remedy}$") as refused:
            await tokens.token()
    assert "client_id" not in str(refused.value)
    assert isinstance(refused.value, NEEDS_A_PERSON)
