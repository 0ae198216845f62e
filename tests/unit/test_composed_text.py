"""Combining marks are composed with their letters, whatever hostile text is around them."""

from postroom.core.mail.message import composed


def test_letters_and_marks_become_one():
    assert composed("Mu\u0308nchen, cafe\u0301") == "M\u00fcnchen, caf\u00e9"
    assert composed("plain") == "plain"


def test_heaps_of_marks_are_left_as_they_are():
    """To put this one in order takes over a second, and one of ten times its length over a hundred."""
    heap = "\u0301\u0316" * 20_000
    assert composed(f"cafe\u0301 a{heap} cafe\u0301") == f"caf\u00e9 a{heap} caf\u00e9"
