"""What PostgreSQL spells its own way stands in braces, and SQLite gets the other spelling."""

import pytest

from postroom.store.engine.spellings import spell


@pytest.mark.parametrize(
    ("text", "in_sqlite", "in_postgres"),
    [
        (
            "SELECT 1 FROM t WHERE id {= ANY(:ids::uuid[])} AND x",
            "SELECT 1 FROM t WHERE id IN (SELECT value FROM json_each(:ids)) AND x",
            "SELECT 1 FROM t WHERE id = ANY(:ids::uuid[]) AND x",
        ),
        (
            "SELECT value ->> 0, (value ->> 1){::bigint} FROM {jsonb_array_elements(:rows::jsonb)} AS e",
            "SELECT value ->> 0, (value ->> 1) FROM json_each(:rows) AS e",
            "SELECT value ->> 0, (value ->> 1)::bigint FROM jsonb_array_elements(:rows::jsonb) AS e",
        ),
        ("SELECT :at{::timestamptz}", "SELECT :at", "SELECT :at::timestamptz"),
        ("SELECT x FROM t {FOR UPDATE}", "SELECT x FROM t ", "SELECT x FROM t FOR UPDATE"),
        ("SELECT x FROM t {FOR NO KEY UPDATE}", "SELECT x FROM t ", "SELECT x FROM t FOR NO KEY UPDATE"),
        ("SELECT x FROM t {FOR SHARE OF t}", "SELECT x FROM t ", "SELECT x FROM t FOR SHARE OF t"),
        ("SELECT x FROM t {FOR UPDATE SKIP LOCKED}", "SELECT x FROM t ", "SELECT x FROM t FOR UPDATE SKIP LOCKED"),
        (
            "SELECT x FROM t {ORDER BY t.x, id FOR UPDATE}",
            "SELECT x FROM t ",
            "SELECT x FROM t ORDER BY t.x, id FOR UPDATE",
        ),
        (
            "SELECT x FROM a, b {ORDER BY x FOR SHARE OF a FOR UPDATE OF b}",
            "SELECT x FROM a, b ",
            "SELECT x FROM a, b ORDER BY x FOR SHARE OF a FOR UPDATE OF b",
        ),
        ("SELECT 1 {FROM pg_advisory_xact_lock(7)}", "SELECT 1 ", "SELECT 1 FROM pg_advisory_xact_lock(7)"),
        (
            "{LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE;} SELECT 1",
            " SELECT 1",
            "LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE; SELECT 1",
        ),
        (
            "SELECT seq FROM {job_queue}, {job_bodies}, {job_ends}",
            "SELECT seq FROM job_rows, job_rows, job_rows",
            "SELECT seq FROM job_queue, job_bodies, job_ends",
        ),
        (
            "SELECT value FROM {unnest(:ids::text[])} AS value",
            "SELECT value FROM json_each(:ids) AS value",
            "SELECT value FROM unnest(:ids::text[]) AS value",
        ),
    ],
)
def test_each_database_gets_its_own_spelling(text: str, in_sqlite: str, in_postgres: str) -> None:
    assert spell("find", text, "sqlite") == in_sqlite
    assert spell("find", text, "postgres") == in_postgres


def test_an_empty_object_is_no_spelling() -> None:
    assert spell("find", "SELECT COALESCE(x, '{}')", "sqlite") == "SELECT COALESCE(x, '{}')"


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
@pytest.mark.parametrize(
    "unknown",
    [
        "{unnest(:ids)}",
        "{= ANY(:ids)}",
        "{= ANY(:ids::uuid[], :more::uuid[])}",
        "{jsonb_array_elements(:rows)}",
        "{::uuid[]}",
        "{ORDER BY id}",
        "{FOR UPDATE NOWAIT}",
        "{LOCK TABLE t IN SHARE MODE}",
        "{job_keys}",
    ],
)
def test_any_other_spelling_is_a_bug_that_is_reported_for_both(unknown: str, dialect: str) -> None:
    with pytest.raises(ValueError, match="the statement find has ") as raised:
        spell("find", f"SELECT 1 {unknown}", "sqlite" if dialect == "sqlite" else "postgres")
    assert unknown in str(raised.value)
