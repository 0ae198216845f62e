"""Everything a user can name is documented, and the documents name nothing that does not exist.

The reference pages hold a part that is written from the code itself, between two marks. `python
tests/unit/test_documented.py` writes those parts anew; the tests compare.
"""

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from postroom.core.audited_actions import AuditedAction
from postroom.core.metrics import METRICS, Metric
from postroom.core.roles import Role
from postroom.core.rules.condition_spec import ConditionSpec, Inexpressible
from postroom.core.rules.conditions import SPECS_BY_SUBJECT
from postroom.core.rules.gmail_writing import write_query
from postroom.core.rules.needs import NEED_THE_HEADERS, NEED_THE_TEXT
from postroom.core.rules.sieve_writing import sieve_test
from postroom.interfaces.cli.root import command_tree
from postroom.interfaces.http.mcp.operation import McpTool
from postroom.interfaces.http.mcp.registry import ALL_TOOLS, TOOLS_BY_NAME
from postroom.interfaces.http.mcp.schemas import input_schema, output_schema
from postroom.settings.reading import NOT_SETTINGS, Setting, known_settings

sys.path.insert(0, str(Path(__file__).parents[1]))  # for a run as a program

from support.access_table import access_reference, access_rows
from support.all_commands import commands
from support.api_reference import api_reference

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BEGIN, END = "<!-- written by tests/unit/test_documented.py -->", "<!-- end of the generated part -->"


def settings_reference() -> str:
    rows = ["| setting | environment | default | allowed | meaning |", "|---|---|---|---|---|"]
    return "\n".join([*rows, *map(settings_row, known_settings())])


def settings_row(setting: Setting) -> str:
    default = setting.default
    if isinstance(default, tuple):
        default = ", ".join(map(str, default))
    elif isinstance(default, bool):
        default = str(default).lower()
    shown = "none" if default is None else f"`{default}`"
    return f"| `{setting.key}` | `{setting.env}` | {shown} | {setting.allowed} | {setting.description} |"


def cli_reference() -> str:
    return "\n\n".join(command_section(name, command) for name, command in commands(command_tree()))


def command_section(name: str, command: TyperCommand | TyperGroup) -> str:
    lines = [f"## `{name}`", "", command.help or ""]
    shown = [each for each in command.params if isinstance(each, (TyperOption, TyperArgument)) and not each.hidden]
    if rows := [parameter_row(each) for each in shown]:
        lines += ["", "| option | default | what it does |", "|---|---|---|", *rows]
    return "\n".join(lines)


def parameter_row(parameter: TyperOption | TyperArgument) -> str:
    name = ", ".join(parameter.opts) if isinstance(parameter, TyperOption) else parameter.metavar or parameter.name
    default = f"`{parameter.default}`" if parameter.default not in (None, False) else ""
    return f"| `{name}` | {default} | {parameter.help or ''} |"


def metrics_reference() -> str:
    rows = [
        "| metric | kind | unit | attributes | what it counts | name in Prometheus |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*rows, *map(metrics_row, METRICS)])


def metrics_row(metric: Metric) -> str:
    attributes = ", ".join(f"`{name}`" for name in metric.attributes)
    cells = (f"`{metric.name}`", metric.kind, f"`{metric.unit}`", attributes, metric.description)
    return f"| {' | '.join(cells)} | `{metric.prometheus_name}` |"


def tools_reference() -> str:
    return "\n\n".join(map(tool_section, ALL_TOOLS))


def tool_section(tool: McpTool) -> str:
    roles = ", ".join(f"`{role}`" for role in Role if role in tool.roles)
    hints = tool.hints
    kinds = [
        "reads only" if hints.read_only else "changes",
        "may end something" if hints.destructive else "destroys nothing",
        "safe to repeat" if hints.idempotent else "each call counts",
    ]
    lines = [f"## `{tool.name}`", "", tool.description, "", f"Roles: {roles}. Hints: {', '.join(kinds)}."]
    schema = input_schema(tool.arguments)
    if rows := [argument_row(name, each, schema) for name, each in schema["properties"].items()]:
        lines += ["", "| argument | type | default | meaning |", "|---|---|---|---|", *rows]
    answer = output_schema(tool.answer)
    return "\n".join([*lines, "", "Answers:", "", "```text", form_of(answer, answer.get("$defs", {})), "```"])


def argument_row(name: str, argument: dict[str, Any], schema: dict[str, Any]) -> str:
    kind = " ".join(form_of(argument, schema.get("$defs", {})).split())
    default = "required" if name in schema.get("required", ()) else f"`{argument.get('default')}`".replace("`None`", "")
    return f"| `{name}` | {kind} | {default} | {argument['description']} |"


def form_of(schema: dict[str, Any], defs: dict[str, Any], indent: str = "") -> str:
    """A schema in few words. What has a reference of its own is named only."""
    kinds = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
    match schema:
        case {"$ref": "#/$defs/ProblemForm"}:
            return "an error as above"
        case {"$ref": str(ref)}:
            return form_of(defs[ref.rpartition("/")[2]], defs, indent)
        case {"properties": {"schema_version": {"const": str(version)}}}:
            return f"`{version}`"
        case {"anyOf": list(choices)} | {"oneOf": list(choices)}:
            return " or ".join(form_of(choice, defs, indent) for choice in choices)
        case {"const": value}:
            return f'"{value}"'
        case {"enum": list(values)}:
            return " or ".join(f'"{value}"' for value in values)
        case {"type": "array", "items": items}:
            return f"[{form_of(items, defs, indent)}, …]"
        case {"type": "object", "properties": dict(properties)}:
            optional = properties.keys() - set(schema.get("required", ()))
            inner = [
                f"{indent}  {name}{'?' if name in optional else ''}: {form_of(each, defs, indent + '  ')}"
                for name, each in properties.items()
            ]
            return "\n".join(["{", *inner, f"{indent}}}"])
        case {"type": "object", "additionalProperties": dict(each)} if each:
            return f"{{name: {form_of(each, defs, indent)}, …}}"
        case {"type": "object"}:
            return "object"
        case {"type": str(kind)}:
            return {"date-time": "time", "uuid": "id"}.get(schema.get("format", ""), kinds.get(kind, kind))
        case {"title": _, **rest} if not rest.keys() - {"description"}:
            return "any JSON"
        case _:
            raise AssertionError(schema)


def api_operations_reference() -> str:
    return api_reference(form_of)


def conditions_reference() -> str:
    return "\n\n".join(f"**{subject}.**\n\n{conditions_table(specs)}" for subject, specs in SPECS_BY_SUBJECT.items())


def conditions_table(specs: Iterable[ConditionSpec]) -> str:
    rows = ["| condition | true if | mail kept as metadata | Gmail | Sieve |", "|---|---|---|---|---|"]
    return "\n".join([*rows, *map(conditions_row, specs)])


def conditions_row(spec: ConditionSpec) -> str:
    condition = {spec.kind: spec.example}
    written = (lambda: write_query(condition), lambda: sieve_test(condition, set()))
    cells = (
        code(f"{spec.kind}: {in_yaml(spec.example)}"),
        spec.meaning,
        known_of_metadata(spec),
        *map(foreign, written),
    )
    return f"| {' | '.join(cells)} |"


def known_of_metadata(spec: ConditionSpec) -> str:
    if spec.kind in NEED_THE_TEXT:
        return "no"
    if spec.kind in NEED_THE_HEADERS:
        return "if its headers were delivered"
    return "if its producer said so" if spec.needs & {"size", "reply_to_mine"} else "yes"


def foreign(write: Callable[[], str]) -> str:
    try:
        return code(write())
    except Inexpressible:
        return "–"


def in_yaml(argument: object) -> str:
    match argument:
        case dict():
            inside = cast("dict[str, object]", argument)
            return "{" + ", ".join(f"{name}: {in_yaml(each)}" for name, each in inside.items()) + "}"
        case bool():
            return str(argument).lower()
        case _:
            text = str(argument)
            return (
                text
                if (text[0].isalpha() and re.fullmatch(r"[\w .@/]+", text)) or re.fullmatch(r"\d+\w", text)
                else f"'{text}'"
            )


def code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


GENERATED: dict[str, Callable[[], str]] = {
    "operations.md": access_reference,
    "api.md": api_operations_reference,
    "mcp.md": tools_reference,
    "settings.md": settings_reference,
    "cli.md": cli_reference,
    "metrics.md": metrics_reference,
    "rules.md": conditions_reference,
}


def parts(page: str) -> tuple[str, str, str]:
    """What stands before, between and behind the marks."""
    before, _, rest = page.partition(BEGIN)
    between, mark, behind = rest.partition(END)
    assert mark, "the page has lost its marks"
    return before, between.strip("\n"), behind


def test_every_action_that_may_be_audited_is_in_the_reference():
    rows = (REFERENCE / "roles.md").read_text("utf-8").partition("## Audited actions")[2].splitlines()
    assert tuple(row.split("`")[1] for row in rows if row.startswith("| `")) == get_args(AuditedAction)


@pytest.mark.parametrize("page", GENERATED)
def test_the_reference_is_what_the_code_says(page: str):
    _, written, _ = parts((REFERENCE / page).read_text("utf-8"))
    assert written == GENERATED[page](), "run python tests/unit/test_documented.py"


def test_every_check_of_the_doctor_is_in_the_reference():
    page = (REFERENCE / "doctor.md").read_text("utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}
    code = "".join(file.read_text("utf-8") for file in (ROOT / "src/postroom/operations").rglob("*check*.py"))
    made = set(re.findall(r'(?:(?:Check|passes_if)\(\s*|\bname = )"([a-z][a-z -]+)"', code))
    assert len(made) > 20
    assert made - listed == set()


def test_every_tool_has_a_name_of_its_own_and_a_role():
    assert len(TOOLS_BY_NAME) == len(ALL_TOOLS)
    assert [tool.name for tool in ALL_TOOLS if not tool.roles] == []


def test_every_command_of_the_table_of_operations_exists():
    declared = {command for row in access_rows() for command in row.commands}
    assert declared <= dict(commands(command_tree())).keys()


def test_every_setting_says_what_it_is():
    assert [setting.key for setting in known_settings() if not setting.description] == []


def test_every_command_and_option_says_what_it_does():
    silent = [name for name, command in commands(command_tree()) if not command.help]
    for name, command in commands(command_tree()):
        silent += [f"{name} {each.name}" for each in command.params if not getattr(each, "help", None)]
    assert silent == []


def test_every_command_takes_the_data_folder_and_those_that_show_something_take_json():
    for name, command in commands(command_tree()):
        options = {option for each in command.params for option in each.opts}
        if not isinstance(command, TyperGroup):
            assert "--data-dir" in options, name
            assert "--json" in options or name == "postroom worker", name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_names_a_setting_that_does_not_exist(page: Path):
    names = set(re.findall(r"\bPOSTROOM_[A-Z_]*[A-Z]\b", page.read_text("utf-8")))
    known = {setting.env for setting in known_settings()}
    assert {name for name in names if not NOT_SETTINGS.fullmatch(name)} - known == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_names_a_command_or_an_option_that_does_not_exist(page: Path):
    known = dict(commands(command_tree()))
    before = r"(?:`|^\s*\$? ?(?:sudo (?:-u postroom )?|docker (?:compose )?exec (?:-it )?postroom )?|bin/)"
    for line in re.findall(rf"{before}(postroom(?: +[a-z-]+[^`\n#|]*)?)", page.read_text("utf-8"), re.M):
        words = line.split()
        named = [" ".join(words[:length]) for length in (4, 3, 2, 1) if " ".join(words[:length]) in known]
        assert named, f"{page.name}: {line}"
        rest = words[len(named[0].split()) :]
        assert not (isinstance(known[named[0]], TyperGroup) and rest and rest[0].isalpha()), f"{page.name}: {line}"
        options = {option for each in known[named[0]].params for option in each.opts} | {"--help"}
        assert {word for word in rest if word.startswith("--")} <= options, f"{page.name}: {line}"


def write() -> None:
    for name, reference in GENERATED.items():
        page = REFERENCE / name
        before, _, behind = parts(page.read_text("utf-8"))
        page.write_text(f"{before}{BEGIN}\n\n{reference()}\n\n{END}{behind}", "utf-8")


if __name__ == "__main__":
    write()
