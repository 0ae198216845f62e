"""Rules in a YAML or JSON file, read within limits and written back.

    rules:
      - name: receipts
        if: {sender_domain: shop.example}
        then: apply_label
        parameters: {label: Receipts}

A plain list of rules, or one rule alone, is accepted too. Beside `rules` may be their `tests`
(core/rules/rule_tests.py). YAML's anchors, aliases and tags are refused: they can make a small file expand without end
or refer to itself, and no rule needs them.
"""

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, cast

from postroom.core.errors import BadInput
from postroom.core.rules.draft import RuleDraft, as_document, read_draft
from postroom.core.rules.rule_tests import RuleTest, read_tests
from postroom.core.strict import shown_name

LARGEST_YAML = 1024 * 1024  # takes some 15 s to parse
LARGEST_JSON = 8 * 1024 * 1024
DEEPEST_DOCUMENT = 50  # 20 levels of conditions are 40 levels of the document: each is an object in a list
MOST_RULES = 10_000

_RULES = re.compile(r"^rules:", re.MULTILINE)
_ITEM = re.compile(r"^( *)- ", re.MULTILINE)
_NEXT_KEY = re.compile(r"^[^\s#-]", re.MULTILINE)

DocumentFormat = Literal["yaml", "json"]


class RuleFile(NamedTuple):
    """The rules in a file, and their tests."""

    drafts: list[RuleDraft]
    tests: list[RuleTest]


def read_documents(text: str) -> list[RuleDraft]:
    """The rules in a YAML or JSON text. Raises BadInput, which names the rule, the field and the remedy."""
    return _read_rules(_parsed(text))


def read_rule_file(text: str) -> RuleFile:
    """The rules in a text, and the tests beside them. Raises BadInput."""
    document = _parsed(text)
    given = cast("Mapping[object, object]", document) if isinstance(document, Mapping) else dict[object, object]()
    tests = given.get("tests")
    return RuleFile(_read_rules(cast("object", document)), [] if tests is None else read_tests(tests))


def _read_rules(document: object) -> list[RuleDraft]:
    drafts: list[RuleDraft] = []
    names: dict[str, int] = {}
    for number, each in enumerate(_list_of_rules(document), 1):
        drafts.append(_named(number, each))
        earlier = names.setdefault(drafts[-1].name, number)
        if earlier != number:
            raise BadInput(f"rule {number}", f"has the name of rule {earlier}, {drafts[-1].name!r}", "rename one")
    return drafts


def write_documents(drafts: Iterable[RuleDraft], format: DocumentFormat) -> str:
    """The rules as a text that `read_documents` can read."""
    document = {"rules": [as_document(draft) for draft in drafts]}
    if format == "json":
        lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in document["rules"])
        return f'{{"rules": [\n{lines}\n]}}\n'
    return _written(document)


def write_rule(draft: RuleDraft) -> str:
    """One rule as YAML that `read_documents` can read."""
    return _written(as_document(draft))


def _written(document: Mapping[str, Any]) -> str:
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 110
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.representer.ignore_aliases = _always  # reading refuses aliases, so repeated values are written out
    written = io.StringIO()
    yaml.dump(document, written)  # pyright: ignore[reportUnknownMemberType]
    return written.getvalue()


def _always(_data: object) -> bool:
    return True


def _named(number: int, given: object) -> RuleDraft:
    """Read one rule; an error names which one it is."""
    try:
        return read_draft(given)
    except BadInput as error:
        name = cast("Mapping[object, object]", given).get("name") if isinstance(given, Mapping) else None
        which = f"rule {number}" + (f" ({shown_name(name)})" if isinstance(name, str) else "")
        raise BadInput(f"{which}, {error.field}", error.problem, error.remedy) from None


def _list_of_rules(document: object) -> list[object]:
    if isinstance(document, Mapping):
        given = cast("Mapping[object, object]", document)
        if "rules" not in given:
            document = [given]
        elif other := [key for key in given if key not in ("rules", "tests")]:
            raise BadInput(shown_name(str(other[0])), "is beside `rules`", "leave it out")
        else:
            document = given["rules"]
    if not isinstance(document, list):
        raise BadInput("rules", "are not a list", "write `rules:` and below it `- name: …` for each")
    found = cast("list[object]", document)
    _check_count(len(found))
    return found


def _check_count(count: int) -> None:
    if count > MOST_RULES:
        raise BadInput("rules", f"there are {count:,}", f"give at most {MOST_RULES:,} at a time")


def _parsed(text: str) -> object:
    size = len(text.encode("utf-8", "replace"))
    if size > LARGEST_JSON:
        raise BadInput("rules", "are more than 8 MiB", "divide the file")
    parsed = _json(text) if text.lstrip()[:1] in ("{", "[") else None
    if parsed is None and size > LARGEST_YAML:
        raise BadInput("rules", "are more than 1 MiB of YAML", "divide the file, or use JSON")
    if parsed is None:
        _check_count(_listed_rules(text))
    document = _yaml(text) if parsed is None else parsed
    if document is None:
        raise BadInput("rules", "there are none in this file", "write `rules:` and below it `- name: …` for each")
    _check_depth(document)
    return document


def _listed_rules(text: str) -> int:
    """How many rules a YAML text lists, each on lines of its own. Reading each takes a millisecond, so too many are
    refused before. What a rule contains is indented deeper than its first line.
    """
    start = _RULES.search(text)
    listed = text if start is None else text[start.end() :]
    end = None if start is None else _NEXT_KEY.search(listed)
    listed = listed if end is None else listed[: end.start()]
    first = _ITEM.search(listed)
    return 0 if first is None else len(re.findall(rf"^{first[1]}- ", listed, re.MULTILINE))


def _json(text: str) -> Any:
    """The parsed JSON; None when it is not JSON, since YAML may begin with a brace as well."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        return None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise BadInput(shown_name(key), "is given twice", "leave one out")
        found[key] = value
    return found


def _yaml(text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml = YAML(typ="safe", pure=True)
    try:
        _check_events(yaml.parse(text))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return YAML(typ="safe", pure=True).load(text)  # pyright: ignore[reportUnknownMemberType]
    except YAMLError as error:
        raise BadInput("rules", f"are not valid YAML ({_place_of(error)})", "fix that line") from None
    except (ValueError, RecursionError) as error:
        raise BadInput("rules", f"are not valid YAML ({type(error).__name__})", "fix it") from None


def _check_events(events: Iterator[Any]) -> None:
    """Refuse references, tags and deep nesting before anything is built."""
    depth = 0
    for event in events:
        line = event.start_mark.line + 1
        kind = type(event).__name__
        if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
            raise BadInput(f"line {line}", "uses an anchor or alias", "write it out; references are not allowed")
        if getattr(event, "tag", None) is not None:
            raise BadInput(f"line {line}", "uses a tag", "leave it out; rules are texts, numbers, true and false")
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if depth > DEEPEST_DOCUMENT + 2:
            raise BadInput(f"line {line}", "is nested too deep", "flatten it")


def _place_of(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = shown_name(str(getattr(error, "problem", None) or type(error).__name__))
    return f"line {mark.line + 1}: {problem}" if mark is not None else problem


def _check_depth(document: object) -> None:
    level = [document]
    for _ in range(DEEPEST_DOCUMENT):
        deeper: list[object] = []
        for each in level:
            if isinstance(each, Mapping):
                deeper += cast("Mapping[object, object]", each).values()
            elif isinstance(each, list):
                deeper += cast("list[object]", each)
        level = deeper
    if level:
        raise BadInput("rules", "are nested too deep", "flatten them")
