"""Classes that only hold fields: which of them are equal or nearly so, and which are one message."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from support.house.figures import Section
from support.house.names import (
    BASES_WITH_FIELDS,
    CONTENTS,
    DECORATOR_OF_FIELDS,
    IN,
    MESSAGE_IDS,
    NESTED,
    QUESTIONS,
    SENDERS,
    SUBJECT,
    WAYS,
)
from support.house.tree import Module, Tree

FEWEST_FIELDS = 3
EXTENDS = "extend one"


@dataclass(frozen=True)
class Shape:
    """A class with its own fields, not those of its bases: to inherit a field is not to say it again."""

    module: Module
    node: ast.ClassDef
    fields: dict[str, ast.expr]

    @property
    def bases(self) -> set[str]:
        return {_last_name(base) for base in self.node.bases}

    @property
    def name(self) -> str:
        return f"{'.'.join(self.module.path.with_suffix('').parts)}.{self.node.name}"


def classes(tree: Tree) -> Iterator[tuple[Module, ast.ClassDef]]:
    for module in tree.modules:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                yield module, node


def shapes_of(tree: Tree) -> list[Shape]:
    """All dataclasses, and all classes that descend from a base with fields. Bases are followed by name."""
    found = [Shape(module, node, _fields(node)) for module, node in classes(tree)]
    known = BASES_WITH_FIELDS
    while more := {each.node.name for each in found if each.bases & known} - known:
        known = known | more
    return [each for each in found if each.bases & known or _is_dataclass(each.node)]


def equal_shapes(tree: Tree) -> Section:
    """Pairs are compared by the names of their fields. Near: both share three quarters of their fields."""
    shapes = shapes_of(tree)
    compared = [(each, frozenset(each.fields)) for each in shapes if len(each.fields) >= FEWEST_FIELDS]
    groups: defaultdict[frozenset[str], list[Shape]] = defaultdict(list)
    for shape, fields in compared:
        groups[fields].append(shape)
    equal = {fields: group for fields, group in groups.items() if len(group) > 1}
    near = [
        (first.name, second.name)
        for (first, ours), (second, theirs) in combinations(compared, 2)
        if ours != theirs and len(ours & theirs) >= 0.75 * max(len(ours), len(theirs))
    ]
    numbers = {
        "classes": len(list(classes(tree))),
        "with fields": len(shapes),
        f"with at least {FEWEST_FIELDS} fields": len(compared),
        "sets of fields that several classes have": len(equal),
        "pairs with equal fields": sum(len(group) * (len(group) - 1) // 2 for group in equal.values()),
        "pairs that share three quarters": len(near),
    }
    listed = [f"= {', '.join(sorted(fields))}: {_names(group)}" for fields, group in equal.items()]
    return Section("Classes with equal fields", numbers, [*listed, *(f"~ {one}, {other}" for one, other in near)])


def mail_shapes(tree: Tree) -> Section:
    """A guess: a class with the sender and subject of a message, or with two kinds of its content.

    Fields within `untrusted` count, which is no shape of its own. Classes without an id of the message are counted
    apart: most are a part of one. A class merely about a message counts too, such as an action that is shown with its
    sender and subject. One that extends another of these says nothing again, and is counted apart.
    """
    shapes = shapes_of(tree)
    by_name: defaultdict[str, list[Shape]] = defaultdict(list)
    for each in shapes:
        by_name[each.node.name].append(each)
    nested = {name for each in shapes for name in _nested(each)}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for each in shapes:
        fields = _all_fields(each, by_name)
        if _is_mail(fields) and each.node.name not in nested and not each.node.name.endswith(QUESTIONS):
            extends = any(_is_mail(_all_fields(base, by_name)) for base in _meant(each.bases, each, by_name))
            kind = EXTENDS if extends else f"{way_of(each.module)}{'' if MESSAGE_IDS & fields else ', no id'}"
            found[kind].append(each.name)
    kinds = [*(f"{way}{kind}" for way in (IN, *(way for way, _ in WAYS)) for kind in ("", ", no id")), EXTENDS]
    listed = [f"{kind:<12}{name}" for kind in kinds for name in found[kind]]
    return Section("Shapes of one mail (guessed)", {kind: len(found[kind]) for kind in kinds}, listed, True)


def way_of(module: Module) -> str:
    parts = module.path.with_suffix("").parts
    return next((way for way, begins in WAYS if any(part.startswith(begins) for part in parts)), IN)


def _is_mail(fields: set[str]) -> bool:
    has_head = SUBJECT in fields and bool(SENDERS & fields)
    return has_head or sum(bool(kind & fields) for kind in CONTENTS) > 1


def _all_fields(shape: Shape, by_name: dict[str, list[Shape]]) -> set[str]:
    found = set(shape.fields)
    for each in _meant(shape.bases | _nested(shape), shape, by_name):
        found |= _all_fields(each, by_name)
    return found


def _meant(names: set[str], shape: Shape, by_name: dict[str, list[Shape]]) -> Iterator[Shape]:
    """The classes that a class means by these names."""
    for name in names - {shape.node.name}:
        # Of several with one name, the one that can be meant: that of the same module, or the only one.
        meant = [each for each in by_name.get(name, []) if each.module is shape.module] or by_name.get(name, [])
        if len(meant) == 1:
            yield meant[0]


def _nested(shape: Shape) -> set[str]:
    """The names of the classes that its untrusted part has."""
    given = shape.fields.get(NESTED)
    return {node.id for node in ast.walk(given) if isinstance(node, ast.Name)} if given is not None else set()


def _fields(node: ast.ClassDef) -> dict[str, ast.expr]:
    return {
        each.target.id: each.annotation
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and not _is_of_class(each.annotation)
    }


def _is_of_class(annotation: ast.expr) -> bool:
    return "ClassVar" in ast.unparse(annotation)


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any(_last_name(each) == DECORATOR_OF_FIELDS for each in node.decorator_list)


def _last_name(node: ast.expr) -> str:
    """`c` of `a.b.c[…](…)`."""
    match node:
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return _last_name(inner)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _names(group: Iterable[Shape]) -> str:
    return ", ".join(each.name for each in group)
