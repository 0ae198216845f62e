"""The counts of `make house`: which lines are code, which classes are said twice, and which files a change touches."""

import subprocess
from pathlib import Path

import pytest

from support.house.lines import Lines, lines_by_package, python_lines, sql_lines, template_lines
from support.house.shapes import equal_shapes, mail_shapes
from support.house.statements import statements
from support.house.touched import part_of, touched
from support.house.tree import Tree, tree_of
from support.house.words import is_private_participle, names, provider_literals


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("", 0),
        ("x = 1\n", 1),
        ("x = 1", 1),
        ("x = 1\n\n   \ny = 2\n", 2),
        ("# why\nx = 1  # because\n", 1),
        ('"""Module.\n\nMore.\n"""\n\nx = 1\n', 1),
        ('def f() -> None:\n    """Do."""\n', 1),
        ('def f() -> None:\n    """Do."""\n    return None\n', 2),
        ('class A:\n    """One.\n\n    Two.\n    """\n\n    x: int\n    """Below it."""\n', 2),
        ('"""Ärger."""; x = 1\n', 1),
        ('x = """a\n\n# b\n"""\n', 3),
        ('f("""a""")\n', 1),
        ("x = [\n    1,\n\n    # why\n    2,\n]\n", 4),
        ("x = 'a\u2028b'\ny = 1\n", 2),
        ("if a:\n    pass\nelse:\n    b()\n", 4),
    ],
)
def test_a_line_of_python_counts_if_it_has_code(source: str, lines: int) -> None:
    assert python_lines(source) == lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("-- name: one(id)\nSELECT 1\n\n-- why\nFROM a -- here\n", 2),
        ("SELECT '--', \"a--b\"\n", 1),
        ("SELECT '\n-- within\n'\n", 3),
        ("/* of\nseveral */\nSELECT 1\n", 1),
    ],
)
def test_a_line_of_sql_counts_if_it_has_more_than_a_comment(source: str, lines: int) -> None:
    assert sql_lines(source) == lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("<p>\n\n</p>\n", 2),
        ("{# of\nseveral #}\n<p></p>\n", 1),
        ("<!-- of\nseveral -->\n<p></p> {# here #}\n", 1),
        ("{% if a %}\n{{ a }}\n{% endif %}\n", 3),
    ],
)
def test_a_line_of_a_template_counts_if_it_has_more_than_a_comment(source: str, lines: int) -> None:
    assert template_lines(source) == lines


def test_lines_are_counted_by_package_without_migrations_and_static_files(tmp_path: Path) -> None:
    tree = tree_with(
        tmp_path,
        {
            "postroom/__init__.py": "x = 1\n",
            "postroom/store/jobs.py": '"""Jobs."""\n\ny = 1\n',
            "postroom/store/queries/common/jobs.sql": "-- name: one()\nSELECT 1\n",
            "postroom/store/migrations/sqlite/0001_jobs.sql": "CREATE TABLE jobs (id)\n",
            "postroom/interfaces/pages/templates/page.html": "<p>\n</p>\n",
            "postroom/interfaces/pages/static/page.css": "p { }\n",
            "sandbox/__init__.py": "",
            "sandbox/one.py": "z = 1\n",
            "no_package/one.py": "z = 1\n",
        },
    )
    assert lines_by_package(tree) == {
        "postroom": {
            "(top)": Lines(1, python=1, whole=1),
            "store": Lines(2, python=1, sql=1, whole=5),
            "interfaces": Lines(1, templates=2, whole=2),
        },
        "sandbox": {"(top)": Lines(2, python=1, whole=1)},
    }


def test_classes_are_compared_by_their_own_fields(tmp_path: Path) -> None:
    sources = {
        "postroom/a.py": "class Form(BaseModel): ...\n" + class_with("Sent(Form)", "a b c d"),
        "postroom/b.py": "@dataclass(frozen=True)\n" + class_with("Kept", "d c b a"),
        "postroom/c.py": class_with("Near(NamedTuple)", "a b c e"),
        "postroom/d.py": "class Heir(Sent): ...\n" + class_with("Plain", "a b c d"),
    }
    found = equal_shapes(tree_with(tmp_path, sources))
    assert found.numbers["with fields"] == 5
    assert found.found == ["= a, b, c, d: a.Sent, b.Kept", "~ a.Sent, c.Near", "~ b.Kept, c.Near"]


def test_a_shape_of_mail_is_known_by_its_fields_and_its_way_by_its_package(tmp_path: Path) -> None:
    sources = {
        "postroom/mailboxes/gmail/a.py": class_with("Raw(NamedTuple)", "id label_ids raw"),
        "postroom/core/b.py": class_with("Facts(NamedTuple)", "sender subject")
        + class_with("MailQuery(TypedDict)", "sender subject"),
        "postroom/interfaces/c.py": class_with("Said(TypedDict)", "sender subject")
        + "class Line(TypedDict):\n    message_id: str\n    untrusted: Said\n",
        "postroom/outbound/d.py": "@dataclass\n" + class_with("NewMail", "id sender subject"),
        "postroom/store/e.py": "class Row(Facts):\n    id: str\n",
    }
    assert [line.split() for line in mail_shapes(tree_with(tmp_path, sources)).found] == [
        ["in", "mailboxes.gmail.a.Raw"],
        ["in,", "no", "id", "core.b.Facts"],
        ["sent", "outbound.d.NewMail"],
        ["out", "interfaces.c.Line"],
        ["extend", "one", "store.e.Row"],
    ]


def test_statements_of_the_two_databases_are_compared_by_their_text(tmp_path: Path) -> None:
    near = "-- name: near(id)\nSELECT a, b, c FROM jobs"
    sources = {
        "common/a.sql": "-- name: both()\nSELECT 1\n",
        "sqlite/a.sql": f"{near}\n-- why\nWHERE id = :id\n-- name: far()\nPRAGMA x\n-- name: own()\nSELECT 2\n",
        "postgres/a.sql": f"{near} WHERE id = ANY(:id)\n-- name: far()\nSELECT pg_x()\n",
    }
    found = statements(tree_with(tmp_path, {f"postroom/store/queries/{name}": text for name, text in sources.items()}))
    assert list(found.numbers.values()) == [1, 3, 2, 2, 1]
    assert found.found == ["94% near"]


@pytest.mark.parametrize("name", ["_shown", "_wanted", "_given"])
def test_a_participle_alone_is_found(name: str) -> None:
    assert is_private_participle(name)


@pytest.mark.parametrize("name", ["_token", "_shown_line", "wanted", "_show"])
def test_a_word_that_is_none_or_has_an_object_is_not(name: str) -> None:
    assert not is_private_participle(name)


def test_names_and_providers_are_found_where_they_are(tmp_path: Path) -> None:
    tree = tree_with(
        tmp_path,
        {
            "postroom/a.py": '"""What it is."""\nclass Kind: ...\nx = "imap"\ny = f"{x} imap"\n',
            "postroom/b.py": '"""Somewhat."""\nclass Kind: ...\ndef _told() -> None: ...\n',
            "postroom/mailboxes/imap/c.py": 'x = "imap"\n',
        },
    )
    assert list(names(tree).numbers.values()) == [1, 2, 1, 1]
    assert provider_literals(tree).found == ["1 a.py"]


def test_the_files_of_a_commit_and_of_a_branch_are_those_git_knows(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q", "-b", "main")
    tree_with(tmp_path, {"postroom/__init__.py": "x = 1\n"})
    commit(tmp_path)
    run_git(tmp_path, "switch", "-qc", "change")
    tree_with(tmp_path, {"postroom/__init__.py": "x = 1\ny = 2\n", "postroom/one.py": ""})
    (tmp_path / "README.md").write_text("One.\n")
    commit(tmp_path)
    files = ["README.md", "src/postroom/__init__.py", "src/postroom/one.py"]
    assert touched(tmp_path, "main", "change") == touched(tmp_path, "main", "main..change") == files
    assert list(map(part_of, [*files, "tests/a.md", "Makefile"])) == ["docs", "src", "src", "tests", "other"]
    with tree_of(tmp_path, "main") as before:
        assert lines_by_package(before) == {"postroom": {"(top)": Lines(1, python=1, whole=1)}}


def commit(folder: Path) -> None:
    run_git(folder, "add", ".")
    run_git(folder, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--no-gpg-sign", "-m", "One")


def run_git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)


def class_with(head: str, fields: str) -> str:
    return f"class {head}:\n" + "".join(f"    {field}: str\n" for field in fields.split())


def tree_with(root: Path, files: dict[str, str]) -> Tree:
    for name, text in files.items():
        path = root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return Tree(root)
