"""A mailbox of the sandbox in a file: all of it comes back, and what is no mailbox is left."""

from pathlib import Path
from random import Random

import pytest

from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.sample import fill_sample
from postroom_sandbox.snapshot import load_mailbox, save_mailbox


def mailbox(owner: str = "mara@lindqvist.example") -> Mailbox:
    return Mailbox(owner, Random(1))


def content(box: Mailbox) -> object:
    mail = [(each.as_json("raw"), each.received_at) for each in box.search(include_spam_trash=True)]
    return mail, [each.as_json() for each in box.labels.all()], box.history_id


def test_a_mailbox_comes_back_as_it_was(tmp_path: Path) -> None:
    first, second, file = mailbox(), mailbox(), tmp_path / "mailbox.json"
    fill_sample(first, 7)
    label = first.labels.create("Zebras", {})
    newest = next(first.search())
    first.modify(newest.id, add={label.id}, remove={"INBOX"})
    save_mailbox(first, file)
    assert load_mailbox(second, file)
    assert content(second) == content(first)
    assert second.threads == first.threads
    assert list(second.changes_since(second.history_id)) == []
    assert second.labels.create("Yaks", {}).id != label.id
    assert second.deliver(newest.mail.raw).id not in first


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"version": 1, "owner": "mara@lindqvist.example"}', "\0"])
def test_what_is_no_mailbox_is_not_loaded(text: str, tmp_path: Path) -> None:
    file, box = tmp_path / "mailbox.json", mailbox()
    assert not load_mailbox(box, file)
    file.write_text(text, encoding="utf-8")
    assert not load_mailbox(box, file)
    save_mailbox(mailbox("bob@example.org"), file)
    assert not load_mailbox(box, file)
    assert len(box) == 0
