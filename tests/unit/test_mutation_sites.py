"""The mutants of `make mutants`: each is one wrong change in a file that is still valid Python."""

import ast
from pathlib import Path

import pytest

from support.mutation_sites import mutants_of

CORE = Path(__file__).parents[2] / "src" / "postroom" / "core"


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("x = a < b", ["x = (a <= b)"]),
        ("x = a if b else c", ["x = (c if b else a)"]),
        ("x = not a", ["x = (a)"]),
        ("x = a and b", ["x = (a or b)"]),
        ("EVERY = timedelta(minutes=15)", ["EVERY = timedelta(minutes=31)"]),
        ("x = True", ["x = False"]),
        ("if a:\n    pass", ["if (not a):\n    pass"]),
        ("x = a * b", ["x = (a // b)"]),
        ("x = 'ä' + f'{a}'", []),
        ("x: Literal[1] = a", []),
        ("n += step", ["n -= step"]),
        ("log(a)", ["pass"]),
        ("def f():\n    yield sql(a)", ["def f():\n    yield from ()"]),
        ("ä = b is None", ["ä = (b is not None)"]),
    ],
)
def test_a_change_is_made_where_it_belongs(source: str, changed: list[str]) -> None:
    given = source.encode()
    assert [each.applied_to(given).decode() for each in mutants_of(given)] == changed


def test_every_change_of_the_core_leaves_python_that_says_something_else() -> None:
    for path in sorted(CORE.glob("*.py"))[::6]:
        source = path.read_bytes()
        whole = ast.dump(ast.parse(source))
        for each in mutants_of(source)[::7]:
            assert ast.dump(ast.parse(each.applied_to(source))) != whole, (path.name, str(each))
