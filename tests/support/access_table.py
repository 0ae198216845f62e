"""Who may ask for which operation, and where: one row for each operation, made from the table of operations.

The reference prints the rows, and a test compares them with the answers of the running product. The person at the
command line is not in them: whoever can open the database may run every command.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from postroom.core.access import Access
from postroom.core.roles import Role
from postroom.core.visitors import PERSON_ROLES, PersonRole
from postroom.interfaces.http.api.registry import NOUNS  # with the description of the API, which declares itself
from postroom.operations.operation import Operation
from postroom.operations.registry import nouns
from support.same_access import ONLY_FORMS

assert NOUNS
Interface = Literal["API", "MCP"]
PROVES = "proof"


@dataclass(frozen=True, slots=True)
class AccessRow:
    """One operation: its title, its names on each interface, and who may ask for it.

    `people` have an entry for each role that may: `yes`, or `proof` if they confirm first that it is them. `tokens`
    have the interfaces that admit each role.
    """

    noun: str
    title: str
    commands: tuple[str, ...]
    http: str | None
    tools: tuple[str, ...]
    forms: tuple[str, ...]
    people: Mapping[PersonRole, str]
    tokens: Mapping[Role, frozenset[Interface]]


def access_rows() -> list[AccessRow]:
    """Every operation of the table, then the forms that are in no table yet."""
    declared = [_row_of(each) for noun in nouns() for each in noun.operations]
    return [*declared, *(_row_of_form(path, access) for path, access in ONLY_FORMS.items())]


def _row_of(operation: Operation) -> AccessRow:
    access, http = operation.access, operation.http
    tools = (operation.tool.name,) if operation.tool else ()
    return AccessRow(
        operation.noun.title,
        first_clause(operation.description),
        tuple(f"postroom {words}" for words in _command_words(operation)),
        f"{http.method} {http.path}" if http else None,
        tools,
        tuple(sorted(operation.forms)),
        _people(access) if http or operation.forms else {},
        _tokens(access.tokens if http else (), operation.tokens),
    )


def _command_words(operation: Operation) -> Iterable[str]:
    """The words of its commands: of the one made from the table, and of those that are written by hand."""
    made = () if operation.command is None else (" ".join(operation.command.names),)
    return (*made, *operation.dialogues)


def _row_of_form(path: str, access: Access) -> AccessRow:
    return AccessRow("Only on the pages", "", (), None, (), (path,), _people(access), {})


def _people(access: Access) -> dict[PersonRole, str]:
    admitted = PERSON_ROLES[PERSON_ROLES.index(access.person) :]
    return dict.fromkeys(admitted, PROVES if access.is_fresh else "yes")


def _tokens(api: Iterable[Role], tool: Iterable[Role]) -> dict[Role, frozenset[Interface]]:
    admitted: dict[Role, set[Interface]] = {}
    for role in api:
        admitted.setdefault(role, set()).add("API")
    for role in tool:
        admitted.setdefault(role, set()).add("MCP")
    return {role: frozenset(interfaces) for role, interfaces in admitted.items()}


def first_clause(text: str) -> str:
    """The beginning of a description, which says what is done; how and when is in the references of each interface."""
    return re.split(r"[.:;](?: |$)", text, maxsplit=1)[0]


def access_reference() -> str:
    """The rows as tables, one for each noun."""
    rows = access_rows()
    sections = [
        _section(noun, [row for row in rows if row.noun == noun]) for noun in dict.fromkeys(row.noun for row in rows)
    ]
    return "\n\n".join(sections)


def _section(noun: str, rows: Iterable[AccessRow]) -> str:
    roles = [role for role in Role if role is not Role.METRICS]
    heads = ["operation", "where", *PERSON_ROLES, *(f"`{role}`" for role in roles)]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *(_line(row, roles) for row in rows)]
    return "\n".join([f"## {noun}", "", *lines])


def _line(row: AccessRow, roles: Iterable[Role]) -> str:
    where = [*row.commands, *([row.http] if row.http else []), *row.tools]
    forms = [f"form {form}" for form in row.forms]
    cells = [row.title or row.forms[0], "<br>".join(f"`{each}`" for each in [*where, *forms])]
    cells += [row.people.get(person, "–") for person in PERSON_ROLES]
    cells += [", ".join(sorted(row.tokens.get(role, ()))) or "–" for role in roles]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
