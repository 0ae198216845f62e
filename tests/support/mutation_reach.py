"""Which functions of a module each test calls, so that a change is shown only to tests that can notice it.

For one run of the tests every function of the module says that it was called. A test that does not call a function
cannot notice a change in it; what runs when the module is imported concerns all tests.
"""

import ast
import builtins
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_SAY = "__reached__"
_AT_IMPORT = ""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def saying(source: bytes) -> bytes:
    """The module, each of whose functions says that it was called; a function is known by its line."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            # Another process that imports it has nobody to tell.
            say = f"__import__('builtins').__dict__.get('{_SAY}', lambda _: None)({node.lineno})"
            node.body.insert(0, ast.parse(say).body[0])
    return ast.unparse(tree).encode()


def function_at(source: bytes, line: int) -> int | None:
    """The innermost function that has this line; None for what runs at import."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, _Function)]
    around = [node.lineno for node in found if node.lineno <= line <= (node.end_lineno or 0)]
    return max(around, default=None)


class Reach:
    """A plugin of pytest: writes down which functions each test calls."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._now: set[int] = set()
        self._found: dict[str, list[int]] = {}
        setattr(builtins, _SAY, self._now.add)

    def pytest_collection_finish(self) -> None:
        self._close(_AT_IMPORT)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        ended = yield
        self._close(item.nodeid)
        return ended

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(self._found))

    def _close(self, name: str) -> None:
        self._found[name] = sorted(self._now)
        self._now.clear()


class Only:
    """A plugin of pytest: these tests only."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._names]


def reaching(found: dict[str, list[int]], function: int | None) -> frozenset[str]:
    """The tests that call the function, by what was written down; all, when it is called at import."""
    every = function is None or function in found[_AT_IMPORT]
    return frozenset(name for name, lines in found.items() if name and (every or function in lines))
