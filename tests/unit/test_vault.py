"""The vault: a secret opens only where it belongs, and its keys are private."""

import base64
import multiprocessing
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import KeyMissing, SealBroken, SettingsError, VaultError
from postroom.vault.keys import KeyFile, SecretKey, read_key
from postroom.vault.sealing import Sealed, Vault

NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)
ADA, BOB = uuid4(), uuid4()
SECRET = "1//0kanarienvogel"


def key_text() -> str:
    return base64.b64encode(os.urandom(32)).decode()


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    opened = Vault(tmp_path)
    opened.prepare([], NOW)
    return opened


def test_what_was_sealed_opens_again_and_never_looks_the_same_twice(vault: Vault) -> None:
    first, second = vault.seal(ADA, "refresh_token", SECRET), vault.seal(ADA, "refresh_token", SECRET)
    assert first != second
    assert {vault.open(each, ADA, "refresh_token") for each in (first, second)} == {SECRET}
    assert "kanarienvogel" not in repr((first, vault.known_keys(), vault))
    assert b"kanarienvogel" not in base64.b64decode(first.text)


@given(st.text())
def test_any_text_comes_back_whole(text: str) -> None:
    vault = Vault(Path("/nonexistent"), key_text())
    encodable = text.encode("utf-8", "replace").decode()
    assert vault.open(vault.seal(ADA, "password", encodable), ADA, "password") == encodable


@pytest.mark.parametrize(("account", "field"), [(BOB, "refresh_token"), (ADA, "password")])
def test_a_seal_does_not_open_in_another_row_or_field(vault: Vault, account: UUID, field: str) -> None:
    sealed = vault.seal(ADA, "refresh_token", SECRET)
    with pytest.raises(SealBroken, match="another account's") as broken:
        vault.open(sealed, account, field)
    assert "kanarienvogel" not in str(broken.value)
    assert broken.value.__cause__ is None


def test_a_seal_of_which_a_single_bit_was_changed_does_not_open(vault: Vault) -> None:
    sealed = vault.seal(ADA, "refresh_token", SECRET)
    content = base64.b64decode(sealed.text)
    for at in range(len(content)):
        changed = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        with pytest.raises(SealBroken):
            vault.open(Sealed(sealed.key_id, base64.b64encode(changed).decode()), ADA, "refresh_token")


@pytest.mark.parametrize("text", ["", "AAAA", "no base64 at all!", "é", base64.b64encode(b"x" * 5000).decode()])
def test_what_was_never_sealed_does_not_open(vault: Vault, text: str) -> None:
    with pytest.raises(SealBroken):
        vault.open(Sealed(vault.known_keys()[0].id, text), ADA, "refresh_token")


def test_a_seal_of_a_key_that_is_not_here_says_which_and_what_to_do(vault: Vault, tmp_path: Path) -> None:
    sealed = vault.seal(ADA, "refresh_token", SECRET)
    elsewhere = Vault(tmp_path / "elsewhere")
    with pytest.raises(KeyMissing, match=f"the key {sealed.key_id}.*keys.json.*secret_key"):
        elsewhere.open(sealed, ADA, "refresh_token")


def test_a_second_machine_makes_no_key_of_its_own_beside_the_one_in_use(tmp_path: Path) -> None:
    with pytest.raises(KeyMissing, match="the key abc123"):
        Vault(tmp_path).prepare(["abc123"], NOW)
    assert not (tmp_path / "keys.json").exists()


def test_the_key_file_is_made_for_its_owner_only(vault: Vault) -> None:
    assert stat.S_IMODE(vault.file.stat().st_mode) == 0o600
    assert len(read_key(base64.b64encode(KeyFile(vault.file.parent).read()[0].secret).decode())) == 32
    assert sorted(each.name for each in vault.file.parent.iterdir()) == [".keys.json.lock", "keys.json"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o777, 0o620])
def test_a_key_file_that_others_may_touch_is_refused(vault: Vault, mode: int) -> None:
    sealed = vault.seal(ADA, "refresh_token", SECRET)
    vault.file.chmod(mode)
    for use in (
        lambda: vault.seal(ADA, "refresh_token", SECRET),
        lambda: Vault(vault.file.parent).open(sealed, ADA, "refresh_token"),
        lambda: vault.add_key(NOW),
    ):
        with pytest.raises(VaultError, match=f"mode {mode:o}.*chmod 600"):
            use()


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"keys": [{"id": "1"}]}', b'{"keys": [1]}', b"\xff"])
def test_a_damaged_key_file_is_an_error_and_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(VaultError, match="restore it from a backup"):
        Vault(tmp_path).prepare([], NOW)
    assert file.read_bytes() == content


def test_a_key_whose_id_is_not_its_own_is_refused(vault: Vault) -> None:
    text = vault.file.read_text()
    vault.file.write_text(text.replace(vault.known_keys()[0].id, "0" * 12))
    with pytest.raises(VaultError, match="not a key file"):
        vault.seal(ADA, "refresh_token", SECRET)


def test_a_new_key_seals_and_the_old_one_still_opens_until_it_is_dropped(vault: Vault) -> None:
    old = vault.seal(ADA, "refresh_token", SECRET)
    new_id = vault.add_key(NOW)
    assert [key.id for key in vault.known_keys()] == [new_id, old.key_id]
    assert vault.seal(ADA, "refresh_token", SECRET).key_id == new_id
    assert vault.open(old, ADA, "refresh_token") == SECRET
    assert vault.drop_keys([old.key_id, "unknown"]) == [old.key_id]
    with pytest.raises(KeyMissing):
        vault.open(old, ADA, "refresh_token")


def test_a_process_that_runs_learns_of_a_new_key_by_itself(vault: Vault) -> None:
    other = Vault(vault.file.parent)
    other.open(vault.seal(ADA, "refresh_token", SECRET), ADA, "refresh_token")
    vault.add_key(NOW)
    assert other.open(vault.seal(ADA, "refresh_token", SECRET), ADA, "refresh_token") == SECRET
    assert other.seal(ADA, "refresh_token", SECRET).key_id == vault.known_keys()[0].id


def test_the_setting_has_the_say_and_keys_of_the_file_still_open(vault: Vault) -> None:
    old = vault.seal(ADA, "refresh_token", SECRET)
    texts = [key_text(), key_text()]
    both = Vault(vault.file.parent, ",".join(texts))
    ids = [SecretKey(read_key(text)).id for text in texts]
    assert [(key.id, key.source) for key in both.known_keys()] == [
        (ids[0], "setting"),
        (ids[1], "setting"),
        (old.key_id, "file"),
    ]
    assert both.seal(ADA, "refresh_token", SECRET).key_id == ids[0]
    assert both.open(old, ADA, "refresh_token") == SECRET
    with pytest.raises(VaultError, match="in front of the others"):
        both.add_key(NOW)


def test_a_key_is_read_in_both_alphabets_of_base64() -> None:
    secret = b"\xff\xef" * 16
    texts = (base64.b64encode(secret), base64.urlsafe_b64encode(secret), base64.b64encode(secret).rstrip(b"="))
    assert {read_key(f" {text.decode()}\n") for text in texts} == {secret}


WRONG_KEYS = {
    "none": "",
    "short": "kanarienvogel",
    "cut": key_text()[:-4],
    "two": key_text() + key_text(),
    "comma": ",",
}


@pytest.mark.parametrize("text", WRONG_KEYS.values(), ids=WRONG_KEYS)
def test_a_wrong_key_in_the_setting_is_refused_without_being_quoted(text: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="secret_key") as refused:
        Vault(tmp_path, text)
    assert "kanarienvogel" not in str(refused.value)


def _first_key(folder: str) -> None:
    Vault(Path(folder)).prepare([], NOW)


def _another_key(folder: str) -> None:
    Vault(Path(folder)).add_key(NOW)


@pytest.mark.parametrize(("work", "keys"), [(_first_key, 1), (_another_key, 8)])
def test_processes_that_need_a_key_at_once_lose_none(tmp_path: Path, work: object, keys: int) -> None:
    start = multiprocessing.get_context("fork")
    processes = [start.Process(target=work, args=(str(tmp_path),)) for _ in range(8)]  # type: ignore[arg-type]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 8
    assert len(KeyFile(tmp_path).read()) == keys
    assert [each.name for each in tmp_path.iterdir() if each.name not in ("keys.json", ".keys.json.lock")] == []


def test_the_keys_of_another_file_are_added_and_none_is_lost(tmp_path: Path) -> None:
    here, there = KeyFile(tmp_path / "here"), KeyFile(tmp_path / "there")
    shared, own, other = (SecretKey(os.urandom(32), NOW) for _ in range(3))
    for file, keys in ((here, [shared, own]), (there, [shared, other])):
        file.path.parent.mkdir()
        file._write(keys)  # pyright: ignore[reportPrivateUsage]
    assert here.merge(there.path.read_bytes(), "the backup") == [other.id]
    assert {key.id for key in here.read()} == {shared.id, own.id, other.id}
    assert here.read()[-1] == own, "what is sealed from here on is sealed with the key that was the newest here"
    assert stat.S_IMODE(here.path.stat().st_mode) == 0o600
    assert here.merge(there.path.read_bytes(), "the backup") == []
    with pytest.raises(VaultError, match="the backup"):
        here.merge(b"{}", "the backup")
