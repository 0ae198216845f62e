"""A mutant is run only against tests that call what it changes."""

import builtins
from typing import Any

import pytest

from support.mutation_reach import function_at, reaching, saying

SOURCE = b"""
LIMIT = 3

def outer(id):
    '''Adds.'''
    def inner():
        return id + 1
    id = inner()
    return id

class Box:
    size = 1
    async def take(self):
        return self.size
"""


def test_the_innermost_function_of_a_line_is_found_and_none_for_what_runs_at_import() -> None:
    assert [function_at(SOURCE, line) for line in (2, 4, 7, 8, 12, 14)] == [None, 4, 6, 4, None, 13]


def test_every_function_says_that_it_was_called_and_does_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    module: dict[str, Any] = {}
    exec(saying(SOURCE), module)
    assert module["outer"](1) == 2, "nobody listens"
    monkeypatch.setattr(builtins, "__reached__", called.append, raising=False)
    assert module["outer"](1) == 2
    assert called == [4, 6]


def test_a_change_concerns_the_tests_that_call_the_function_and_all_when_it_runs_at_import() -> None:
    found = {"": [9], "a": [4], "b": [4, 6], "c": []}
    assert reaching(found, 6) == {"b"}
    assert reaching(found, 4) == {"a", "b"}
    assert reaching(found, 13) == frozenset()
    assert reaching(found, None) == reaching(found, 9) == {"a", "b", "c"}
