"""`postroom person`: people, their roles, links and sessions on the command line."""

from support.shell import Shell


def test_somebody_is_added_listed_changed_and_removed(shell: Shell) -> None:
    assert shell("person", "add", "Mara", "--role", "admin") == 0
    link = shell.out.strip()
    assert link.startswith("http://localhost:8025/sign-in/once#")
    assert "works once" in shell.err
    assert shell("person", "add", "nils", "--json") == 0
    (added,) = shell.json()
    assert added["sign_in_url"] != link
    assert shell("person", "list", "--json") == 0
    assert [(each["name"], each["role"], each["has_password"]) for each in shell.json()] == [
        ("mara", "admin", False),
        ("nils", "viewer", False),
    ]
    assert shell("person", "role", "nils", "operator") == 0
    assert "is operator now" in shell.out
    assert shell("person", "role", "nils", "operator") == 0
    assert "was operator before" in shell.out
    assert shell("person", "link", "nils") == 0
    assert "#" in shell.out
    assert shell("person", "sessions", "--json") == 0
    assert shell.json() == []
    assert shell("person", "sign-out", "nils") == 0
    assert "0 sessions ended" in shell.out
    assert shell("person", "remove", "nils") == 0
    assert shell("audit", "list", "--json") == 0
    assert [each["action"] for each in shell.json()][::-1] == [
        *("person.add", "person.add", "person.role", "person.link", "person.remove")
    ]
    secret = link.partition("#")[2]
    assert secret not in shell.out


def test_mistakes_are_named_with_the_way_out(shell: Shell) -> None:
    assert shell("person", "add", "mara", "--role", "owner") != 0
    assert "viewer, operator, admin" in shell.err
    assert shell("person", "add", "two words") != 0
    assert "without spaces" in shell.err
    assert shell("person", "add", "mara", "--role", "admin") == 0
    assert shell("person", "add", "mara") != 0
    assert "already somebody called mara" in shell.err
    for words in (("role", "nobody", "viewer"), ("link", "nobody"), ("remove", "nobody"), ("sign-out", "nobody")):
        assert shell("person", *words) != 0
        assert "postroom person list" in shell.err
    assert shell("person", "add", "nils") == 0
    assert shell("person", "role", "mara", "viewer") != 0
    assert "only admin" in shell.err
