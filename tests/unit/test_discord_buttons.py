"""The ids of Discord buttons: only those we signed count, until they expire."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from postroom.core.errors import KeyMissing, Refused
from postroom.triage.act.approvals import Verdict
from postroom.triage.act.discord_buttons import LONGEST, PURPOSE, ButtonIds, named_action
from postroom.vault.sealing import Vault
from support.approvals import WAITING

NOW = datetime(2026, 11, 15, 9, tzinfo=UTC)
BUTTONS = ButtonIds(lambda: [b"k" * 32])


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_signed_button_says_what_was_signed(verdict: Verdict):
    custom_id = BUTTONS.sign(verdict, WAITING)
    assert len(custom_id) <= LONGEST
    press = BUTTONS.read(custom_id, NOW)
    assert (press.verdict, press.action_id) == (verdict, WAITING.id)
    assert WAITING.action_hash.startswith(press.hash_beginning)
    assert len(press.hash_beginning) == 24


def test_a_button_whose_any_character_was_changed_is_refused():
    custom_id = BUTTONS.sign("reject", WAITING)
    for index, character in enumerate(custom_id):
        changed = custom_id[:index] + ("a" if character != "a" else "b") + custom_id[index + 1 :]
        with pytest.raises(Refused, match="not signed"):
            BUTTONS.read(changed, NOW)


def test_a_rejection_cannot_be_turned_into_an_approval():
    custom_id = BUTTONS.sign("reject", WAITING)
    with pytest.raises(Refused):
        BUTTONS.read(custom_id.replace(":r:", ":a:"), NOW)


@pytest.mark.parametrize("hostile", ["", ":", "postroom:", "postroom:a:b:c", "postroom:a:::::", "ä" * 90, "\ud800:x"])
def test_what_is_no_button_of_ours_is_refused(hostile: str):
    with pytest.raises(Refused, match="not signed"):
        BUTTONS.read(hostile, NOW)


def test_a_button_expires_with_its_action():
    assert WAITING.expires_at is not None
    custom_id = BUTTONS.sign("approve", WAITING)
    BUTTONS.read(custom_id, WAITING.expires_at - timedelta(seconds=1))
    with pytest.raises(Refused, match="expired"):
        BUTTONS.read(custom_id, WAITING.expires_at)


def test_another_installation_signs_other_buttons():
    with pytest.raises(Refused, match="not signed"):
        BUTTONS.read(ButtonIds(lambda: [b"x" * 32]).sign("approve", WAITING), NOW)


def test_buttons_of_an_older_key_count_until_it_is_dropped(tmp_path: Path):
    vault = Vault(tmp_path)
    buttons = ButtonIds(lambda: vault.signing_keys(PURPOSE))
    with pytest.raises(KeyMissing):
        buttons.sign("approve", WAITING)
    old = vault.prepare([], NOW)
    custom_id = buttons.sign("approve", WAITING)
    vault.add_key(NOW)
    assert buttons.sign("approve", WAITING) != custom_id
    buttons.read(custom_id, NOW)
    vault.drop_keys([old])
    with pytest.raises(Refused):
        buttons.read(custom_id, NOW)


def test_the_audit_log_names_the_action_and_never_a_signature():
    assert named_action(BUTTONS.sign("approve", WAITING)) == str(WAITING.id)
    assert named_action("postroom:nonsense") == "unknown"


def test_two_actions_have_different_buttons():
    other = replace(WAITING, action_hash="f0" * 32)
    assert BUTTONS.sign("approve", WAITING) != BUTTONS.sign("approve", other)
