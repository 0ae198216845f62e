"""Rules in a YAML or JSON file, read within limits and written back.

    rules:
      - name: receipts
        if: {sender_domain: shop.example}
        then: apply_label
        parameters: {label: Receipts}

A plain list of rules, or one rule alone, is accepted too. Beside `rules` may be their `tests`
(core/rules/rule_tests.py).
"""

import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, cast

from postroom.core.errors import BadInput
from postroom.core.plain_yaml import read_yaml
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
    return _read_rules(_parse(text))


def read_rule_file(text: str) -> RuleFile:
    """The rules in a text, and the tests beside them. Raises BadInput."""
    document = _parse(text)
    given = cast("Mapping[object, object]", document) if isinstance(document, Mapping) else dict[object, object]()
    tests = given.get("tests")
    return RuleFile(_read_rules(cast("object", document)), [] if tests is None else read_tests(tests))


def _read_rules(document: object) -> list[RuleDraft]:
    drafts: list[RuleDraft] = []
    names: dict[str, int] = {}
    for number, each in enumerate(_list_of_rules(document), 1):
        drafts.append(_read_rule(number, each))
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
    return _write_yaml(document)


def write_rule(draft: RuleDraft) -> str:
    """One rule as YAML that `read_documents` can read."""
    return _write_yaml(as_document(draft))


def _write_yaml(document: Mapping[str, Any]) -> str:
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


def _read_rule(number: int, given: object) -> RuleDraft:
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


def _parse(text: str) -> object:
    size = len(text.encode("utf-8", "replace"))
    if size > LARGEST_JSON:
        raise BadInput("rules", "are more than 8 MiB", "divide the file")
    parsed = _json(text) if text.lstrip()[:1] in ("{", "[") else None
    if parsed is None and size > LARGEST_YAML:
        raise BadInput("rules", "are more than 1 MiB of YAML", "divide the file, or use JSON")
    if parsed is None:
        _check_count(_listed_rules(text))
    document = read_yaml(text, "rules") if parsed is None else parsed
    if document is None:
        raise BadInput("rules", "there are none in this file", "write `rules:` and below it `- name: …` for each")
    _check_depth(document)
    return document


def _listed_rules(text: str) -> int:
    """How many rules a YAML text lists, each on lines of its own. Reading each takes a millisecond, so too many are
    refused before. The content of a rule is indented deeper than its first line.
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
