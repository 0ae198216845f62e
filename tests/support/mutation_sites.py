"""Small wrong changes to a Python file, one at a time: what tests of that file should notice.

Each changes what the program does and not what it says: comparisons, arithmetic, conditions, numbers, truth values,
and statements that are done for their effect. Words are left alone (most are for people), and so are annotations.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """A file with one change; `start` and `end` are where in its bytes, `before` and `after` what."""

    line: int
    start: int
    end: int
    before: str
    after: str

    def applied_to(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"line {self.line}: {_short(self.before)} → {_short(self.after)}"


def mutants_of(source: bytes) -> list[Mutant]:
    """All of them, in the order of the file."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found: list[Mutant] = []
    for node, text in _changes(ast.parse(source)):
        end_line, end_column = getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)
        start, end = starts[node.lineno - 1] + node.col_offset, starts[end_line - 1] + end_column
        found.append(Mutant(node.lineno, start, end, source[start:end].decode(), text))
    return sorted(found, key=lambda each: (each.start, each.end, each.after))


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """The nodes that are replaced, and by what."""
    for node in _walk(tree):
        match node:
            case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
                yield node, _text(ast.Compare(node.left, [_COMPARISONS[type(op)]()], node.comparators))
            case ast.BinOp() if type(node.op) in _ARITHMETIC and not _is_text(node):
                yield node, _text(ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right))
            case ast.BoolOp(op, values):
                yield node, _text(ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values))
            case ast.UnaryOp(ast.Not(), operand):
                yield node, _text(operand)
            case ast.IfExp(test, body, orelse):
                yield node, _text(ast.IfExp(test, orelse, body))
            case ast.If(test) | ast.While(test) if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
                yield test, _text(ast.UnaryOp(ast.Not(), test))
            case ast.Constant(value):
                if (changed := _other(value)) is not None:
                    yield node, changed
            case ast.Expr(value) if not isinstance(value, ast.Constant):
                yield node, "pass" if not isinstance(value, ast.Yield | ast.YieldFrom) else "yield from ()"
            case ast.AugAssign(op=ast.Add()):
                yield node, f"{ast.unparse(node.target)} -= {ast.unparse(node.value)}"
            case ast.Break():
                yield node, "continue"
            case ast.Continue():
                yield node, "break"
            case _:
                pass


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes, but those of annotations, decorators and subscripts of types."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "type_comment"):
            continue
        children: list[object] = value if isinstance(value, list) else [value]
        for child in children:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from _walk(child)


def _other(value: object) -> str | None:
    match value:
        case bool():
            return str(not value)
        case int():
            return str(2 * value + 1)
        case float():
            return repr(2 * value + 1)
        case _:
            return None


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )


def _text(node: ast.expr) -> str:
    # In brackets, as it stands among operators that may bind more tightly.
    return f"({ast.unparse(node)})"


def _short(text: str, most: int = 60) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= most else f"{joined[: most - 1]}…"
