"""Named SQL: how a block is read, and that both databases have the same blocks."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from postroom.store.engine import statements
from postroom.store.engine.statements import _HEADER, Compiled, _parse, blocks

ONLY_SQLITE = {
    "quick_check",
    "search_filters",
    "search_words",
    "search_without",
    "search_recent_words",
    "select_search_window",
}
ONLY_POSTGRES = {
    "select_last_seq",
    "select_open_inserts",
    "lock_marks",
    "advance_marks",
    "select_place",
    "count_receipts",
    "select_server_id",
    "search_newest",
    "search_by_words",
    "search_by_heads",
    "search_by_labels",
    "estimate_words",
    "estimate_heads",
    "estimate_labels",
}


def _one(text: str, dialect: Any = "sqlite") -> tuple[Compiled, ...]:
    ((_, block),) = _parse(text, dialect)
    return block


def test_both_databases_have_the_same_statements() -> None:
    sqlite, postgres = set(blocks("sqlite")), set(blocks("postgres"))
    assert sqlite - postgres == ONLY_SQLITE
    assert postgres - sqlite == ONLY_POSTGRES


def test_a_statement_declares_the_same_parameters_for_both() -> None:
    sqlite, postgres = _declared("sqlite"), _declared("postgres")
    assert {name: sqlite[name] for name in sqlite if name in postgres} == {
        name: postgres[name] for name in postgres if name in sqlite
    }


def _declared(dialect: str) -> dict[str, list[str]]:
    """The parameters of each statement of one dialect, in their order."""
    found: dict[str, list[str]] = {}
    for entry in (files("postroom.store") / "queries" / dialect).iterdir():
        for header in _HEADER.finditer(entry.read_text("utf-8")):
            found[header[1]] = header[2].replace(",", " ").split()
    return found


def test_parameters_are_numbered_in_the_way_of_the_dialect() -> None:
    text = "-- name: find(id, state)\nSELECT 1 FROM t WHERE id = :id AND state = :state"
    assert _one(text)[0].text == "SELECT 1 FROM t WHERE id = ?1 AND state = ?2"
    assert _one(text, "postgres")[0].text == "SELECT 1 FROM t WHERE id = $1 AND state = $2"


def test_a_parameter_may_be_used_twice_and_out_of_order() -> None:
    (part,) = _one("-- name: find(a, b)\nSELECT :b, :a, :b")
    assert part.text == "SELECT ?1, ?2, ?1"
    assert part.arguments(("a", "b")) == ("b", "a")


def test_parameters_in_the_declared_order_are_passed_as_they_are() -> None:
    (part,) = _one("-- name: find(a, b)\nSELECT :a, :b")
    parameters = ("a", "b")
    assert part.arguments(parameters) is parameters


def test_a_cast_is_no_parameter() -> None:
    assert _one("-- name: find(ids)\nSELECT :ids::uuid[]", "postgres")[0].text == "SELECT $1::uuid[]"


def test_a_time_format_is_no_parameter() -> None:
    assert _one("-- name: now()\nSELECT strftime('%H:%M:%fZ')")[0].text == "SELECT strftime('%H:%M:%fZ')"


def test_comments_are_left_out_with_all_they_say() -> None:
    assert _one("-- name: find()\n-- not :this; nor that\nSELECT 1")[0].text == "SELECT 1"


def test_a_block_may_hold_several_statements_each_with_its_own_parameters() -> None:
    first, second = _one("-- name: both(a, b)\nDELETE FROM x WHERE b = :b;\nDELETE FROM y WHERE a = :a;")
    assert (first.text, first.arguments(("a", "b"))) == ("DELETE FROM x WHERE b = ?1", ("b",))
    assert (second.text, second.arguments(("a", "b"))) == ("DELETE FROM y WHERE a = ?1", ("a",))


def test_a_semicolon_inside_a_line_ends_nothing() -> None:
    assert len(_one("-- name: odd()\nSELECT ';' || 'x'")) == 1


def test_several_blocks_are_distinguished_by_their_names() -> None:
    assert [name for name, _ in _parse("-- name: a()\nSELECT 1\n\n-- name: b()\nSELECT 2", "sqlite")] == ["a", "b"]


def test_a_part_stands_wherever_it_is_named_also_in_later_parts() -> None:
    parts = "-- part: mine\n-- why\nid = :id\n\n-- part: open\n{mine} AND state = 1\n\n"
    text = f"{parts}-- name: a(id)\nSELECT 1 WHERE {{open}}\n\n-- name: b(id)\nSELECT 2 WHERE {{mine}}"
    (first, (one,)), (second, (two,)) = _parse(text, "sqlite")
    assert (first, one.text) == ("a", "SELECT 1 WHERE id = ?1 AND state = 1")
    assert (second, two.text) == ("b", "SELECT 2 WHERE id = ?1")


def test_a_part_that_is_not_there_is_a_bug_that_is_reported() -> None:
    with pytest.raises(ValueError, match=r"find has \{open\}, which is no part before it and no spelling"):
        _one("-- name: find()\nSELECT 1 WHERE {open}")


def test_a_parameter_of_a_lock_is_not_passed_to_the_database_that_needs_no_lock() -> None:
    text = "-- name: lock(name)\nSELECT 1 {FROM pg_advisory_xact_lock(730541, hashtext(:name))}"
    (here,), (there,) = _one(text), _one(text, "postgres")
    assert (here.text, here.arguments(("ada",))) == ("SELECT 1", ())
    assert (there.text, there.arguments(("ada",))) == (
        "SELECT 1 FROM pg_advisory_xact_lock(730541, hashtext($1))",
        ("ada",),
    )


def test_a_lock_of_a_table_is_a_statement_of_its_own() -> None:
    text = "-- name: lock()\n{LOCK TABLE t IN SHARE MODE;}\nSELECT 1"
    assert [each.text for each in _one(text)] == ["SELECT 1"]
    assert [each.text for each in _one(text, "postgres")] == ["LOCK TABLE t IN SHARE MODE", "SELECT 1"]


def test_a_part_may_hold_what_the_databases_spell_differently() -> None:
    text = "-- part: mine\nid {= ANY(:ids::uuid[])}\n\n-- name: find(ids)\nSELECT 1 FROM t WHERE {mine} {FOR SHARE}"
    assert _one(text)[0].text == "SELECT 1 FROM t WHERE id IN (SELECT value FROM json_each(?1))"
    assert _one(text, "postgres")[0].text == "SELECT 1 FROM t WHERE id = ANY($1::uuid[]) FOR SHARE"


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_what_one_database_alone_reads_is_written_as_it_reads_it(dialect: str) -> None:
    for entry in (files("postroom.store") / "queries" / dialect).iterdir():
        assert not re.search(r"\{[^{}]*\W[^{}]*\}", entry.read_text("utf-8")), f"{dialect}/{entry.name} has braces"


def _written(folder: Path, monkeypatch: pytest.MonkeyPatch, **texts: str) -> None:
    """A store with these queries, at most one file in each folder."""
    for place in ("common", "sqlite", "postgres"):
        (folder / "queries" / place).mkdir(parents=True)
    for place, text in texts.items():
        (folder / "queries" / place / "things.sql").write_text(text)

    def found(_package: str) -> Path:
        return folder

    monkeypatch.setattr(statements, "files", found)


def test_a_statement_of_both_databases_is_not_defined_again_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _written(tmp_path, monkeypatch, common="-- name: find()\nSELECT 1", postgres="-- name: find()\nSELECT 2")
    assert set(blocks.__wrapped__("sqlite")) == {"find"}
    with pytest.raises(ValueError, match="the statement find is defined twice for postgres"):
        blocks.__wrapped__("postgres")


def test_a_statement_of_both_has_parts_of_each_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _written(
        tmp_path,
        monkeypatch,
        common="-- name: find(since)\nSELECT {later} FROM t WHERE at > :since",
        sqlite="-- part: later\nmax(at, :since)",
        postgres="-- part: later\nGREATEST(at, :since)",
    )
    (here,), (there,) = blocks.__wrapped__("sqlite")["find"], blocks.__wrapped__("postgres")["find"]
    assert here.text == "SELECT max(at, ?1) FROM t WHERE at > ?1"
    assert there.text == "SELECT GREATEST(at, $1) FROM t WHERE at > $1"


def test_a_bug_is_reported_with_its_file_and_its_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _written(tmp_path, monkeypatch, common="-- name: find()\nSELECT 1 {FOR EVER}")
    with pytest.raises(ValueError, match=r"queries/common/things.sql: the statement find has {FOR EVER}"):
        blocks.__wrapped__("postgres")


def test_a_parameter_that_is_not_declared_is_a_bug_that_is_reported() -> None:
    with pytest.raises(ValueError, match="find uses :id, which its header does not declare"):
        _one("-- name: find()\nSELECT :id")


def test_a_parameter_that_is_not_used_is_a_bug_that_is_reported() -> None:
    with pytest.raises(ValueError, match=r"find declares \['id', 'state'\] and uses \['id'\]"):
        _one("-- name: find(id, state)\nSELECT :id")


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_no_list_is_paged_by_offset(dialect: Any) -> None:
    """A page far back would read all before it. What remains keeps a planner's order, or finds the end of a look."""
    for name, block in blocks(dialect).items():
        for part in block:
            for limit, offset in re.findall(r"(?:LIMIT (\S+) )?OFFSET (\S+)", part.text):
                assert offset in ("0", "0)") or limit == "1", f"{name} pages by offset"
