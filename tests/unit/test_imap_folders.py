"""What folders are for, and what folders, flags and keywords are as labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.actions.label_changes import LabelChange
from postroom.core.errors import LabelMissing
from postroom.mailboxes.imap.answers import Listed, Namespace
from postroom.mailboxes.imap.folder_names import encoded
from postroom.mailboxes.imap.folders import FolderMap, Role
from postroom.mailboxes.imap.labels import Keywords, is_label, labels_of, name_of_keyword, plan_of, written_keyword


def listed(name: str, *attributes: str, separator: str = "/") -> Listed:
    return Listed(encoded(name), separator, frozenset(attributes))


def roles(folders: FolderMap) -> dict[str, str]:
    return {each.role: each.name for each in folders.folders if each.role is not None}


def test_the_server_says_what_a_folder_is_for() -> None:
    found = FolderMap(
        [listed("Inbox"), listed("Müll", "\\trash"), listed("Trash"), listed("Alt", "\\archive"), listed("Archive")],
        None,
    )
    assert roles(found) == {"INBOX": "Inbox", "TRASH": "Müll", "ARCHIVE": "Alt"}
    assert {each.label for each in found.folders if each.role is None} == {"folder:Trash", "folder:Archive"}


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Papierkorb", "TRASH"),
        ("Gelöschte Elemente", "TRASH"),
        ("Deleted Messages", "TRASH"),
        ("Éléments envoyés", "SENT"),
        ("Черновики", "DRAFT"),
        ("迷惑メール", "SPAM"),
        ("ARCHIVES", "ARCHIVE"),
    ],
)
def test_without_that_the_usual_names_do(name: str, role: Role) -> None:
    assert roles(FolderMap([listed("INBOX"), listed(name)], None)) == {"INBOX": "INBOX", role: name}
    below = FolderMap(
        [listed("INBOX", separator="."), listed(f"INBOX.{name}", separator=".")], Namespace(b"INBOX.", ".")
    )
    assert roles(below) == {"INBOX": "INBOX", role: name}


def test_a_folder_of_this_name_deeper_down_is_the_users() -> None:
    assert roles(FolderMap([listed("INBOX"), listed("Projects/Trash")], None)) == {"INBOX": "INBOX"}


def test_all_mail_is_gmails_archive() -> None:
    found = FolderMap([listed("INBOX"), listed("[Gmail]", "\\noselect"), listed("[Gmail]/Alle", "\\all")], None)
    assert roles(found) == {"INBOX": "INBOX", "ARCHIVE": "[Gmail]/Alle"}


def test_a_new_folder_is_in_the_users_namespace_with_the_servers_separator() -> None:
    found = FolderMap([listed("INBOX", separator=".")], Namespace(b"INBOX.", "."))
    assert found.to_create("Postroom/Größe") == b"INBOX.Postroom.Gr&APYA3w-e"
    assert FolderMap([listed("INBOX")], None).to_create("a/b") == b"a/b"


FOLDERS = FolderMap(
    [listed("INBOX"), listed("Trash", "\\trash"), listed("Archive", "\\archive"), listed("Work/A")], None
)
INBOX, WORK = FOLDERS.folders[0], FOLDERS.folders[3]


def test_flags_and_keywords_are_labels_and_marks_of_programs_are_not() -> None:
    assert labels_of(WORK, ["\\Seen", "\\flagged", "Receipts", "$Forwarded", "NonJunk"]) == {
        "folder:Work/A",
        "STARRED",
        "keyword:receipts",
    }
    assert labels_of(FOLDERS.folders[2], []) == {"UNREAD"}


def test_a_change_of_labels_is_flags_and_a_folder() -> None:
    keywords = Keywords()
    keywords.learn(["Receipts"])
    plan = plan_of(FOLDERS, keywords, INBOX, ["folder:Work/A", "STARRED", "keyword:receipts"], ["INBOX", "UNREAD"])
    assert (plan.add_flags, plan.remove_flags) == ({"\\Flagged", "\\Seen", "Receipts"}, frozenset())
    assert (plan.folder, plan.to_archive) == (WORK, False)
    assert plan_of(FOLDERS, keywords, INBOX, [], ["INBOX"]).to_archive
    stays = plan_of(FOLDERS, keywords, WORK, ["folder:Work/A"], ["INBOX"])
    assert (stays.folder, stays.to_archive) == (None, False)


@pytest.mark.parametrize("label", ["folder:Gone", "SPAM", "IMPORTANT", "keyword:a b", "keyword:$Forwarded"])
def test_a_label_that_the_mailbox_lacks_is_missing(label: str) -> None:
    with pytest.raises(LabelMissing):
        plan_of(FOLDERS, Keywords(), INBOX, [label], [])


@given(st.text(min_size=1, max_size=20).filter(lambda each: each.isprintable() and each.strip()))
def test_every_name_has_a_keyword_and_is_read_again(name: str) -> None:
    keyword = written_keyword(name)
    assert is_label(keyword) or keyword.lower() in ("junk", "nonjunk", "notjunk")
    assert name_of_keyword(keyword) == name
    keywords = Keywords()
    keywords.learn([keyword])
    assert [each.name for each in keywords.labels()] in ([name], [])


def test_a_folder_is_a_place_so_putting_a_message_there_takes_it_out_of_others() -> None:
    put = LabelChange(add=frozenset({"folder:Work/A"})).effective(frozenset({"INBOX", "UNREAD", "keyword:x"}))
    assert (put.add, put.remove) == ({"folder:Work/A"}, {"INBOX"})
    trashed = LabelChange(add=frozenset({"TRASH"})).effective(frozenset({"folder:Work/A", "Label_1"}))
    assert (trashed.add, trashed.remove) == ({"TRASH"}, {"folder:Work/A"})
    assert LabelChange(add=frozenset({"Label_1"})).effective(frozenset({"INBOX"})).remove == frozenset()


def test_folders_are_named_without_the_prefix_that_all_have() -> None:
    names = ["INBOX", "INBOX.Work.A", "INBOX.a/b", "INBOX.a.b", "Shared.x", "INBOX.Shared.x"]
    found = FolderMap([listed(each, separator=".") for each in names], Namespace(b"INBOX.", "."))
    assert [each.name for each in found.folders] == [
        "INBOX", "Work/A", "a\u2215b", "a/b", "Shared.x", "Shared/x"
    ]  # fmt: skip
    for each in found.folders[1:]:
        assert found.of_label(f"folder:{each.name}") == each


def test_a_server_that_does_not_tell_its_prefix_shows_it() -> None:
    below = FolderMap([listed("INBOX", separator="."), listed("INBOX.Trash", separator=".")], None)
    assert below.to_create("Receipts") == b"INBOX.Receipts"
    beside = FolderMap([listed("INBOX"), listed("INBOX/Work"), listed("Trash")], None)
    assert beside.to_create("Receipts") == b"Receipts"
    assert [each.name for each in beside.folders] == ["INBOX", "INBOX/Work", "Trash"]


def test_at_gmail_folders_are_labels_unless_all_mail_is_hidden() -> None:
    usual = [
        listed("INBOX"),
        listed("[Google Mail]", "\\noselect"),
        listed("[Google Mail]/Alle Nachrichten", "\\all"),
        listed("[Google Mail]/Papierkorb", "\\trash"),
        listed("[Google Mail]/Spam", "\\junk"),
        listed("[Google Mail]/Gesendet", "\\sent"),
        listed("[Google Mail]/Wichtig", "\\important"),
        listed("Work/Old"),
    ]
    found = FolderMap(usual, None, is_gmail=True)
    assert [each.name for each in found.search_order()] == [
        "[Google Mail]/Alle Nachrichten",
        "[Google Mail]/Spam",
        "[Google Mail]/Papierkorb",
    ]
    assert [each.id for each in found.labels() if not each.is_system] == ["label:Work/Old"]
    hidden = FolderMap([each for each in usual if "\\all" not in each.attributes], None, is_gmail=True)
    assert not hidden.is_gmail
    assert "folder:Work/Old" in {each.id for each in hidden.labels()}
    assert len(hidden.search_order()) == 6
