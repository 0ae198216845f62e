"""Where tests live: suites contain tests and their fixtures; shared code is in tests/support."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SUITES = ("browser", "chaos", "conformance", "integration", "sample", "security", "unit")
MODULES = sorted(TESTS.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The first part of the name of each module that the file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_holds_tests_and_fixtures_only(suite: str) -> None:
    others = [path.name for path in (TESTS / suite).rglob("*.py") if not path.name.startswith(("test_", "conftest"))]
    assert others == [], "what tests share belongs to tests/support"


def test_nothing_imports_from_a_suite() -> None:
    taken = {path.relative_to(TESTS): imported(path) & {*SUITES, "conftest"} for path in MODULES}
    assert {path: names for path, names in taken.items() if names} == {}


def test_unit_tests_ask_for_no_database_and_no_server() -> None:
    """What needs one is a test of several parts, and belongs to another suite."""
    parts = {"database", "database_url", "migrated_sqlite", "postgres", "postgres_url", "redis_server", "sqlite"}
    asking = {
        (path.name, node.name)
        for path in (TESTS / "unit").glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        if parts & {each.arg for each in node.args.args}
    }
    assert asking == set()
