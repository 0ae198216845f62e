"""A form that was refused is shown again as it was sent, its problem at the field that is wrong.

No page does anything for this: the refused form is found in the finished page, by its address and its hidden fields.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser
from urllib.parse import unquote

from postroom.core.errors import BadInput
from postroom.interfaces.dashboard.display import shown

LONGEST_PROBLEM = 400
PROBLEM = 'id="problem"'
_OF_THE_PAGE = ("form_token", "back")
_NEVER_FILLED = ("password", "hidden", "file", "submit")
_PART = re.compile(r"\{(\w+)(?::\w+)?\}")
_PREDICATE = re.compile(r"(is|has|was|must|can|cannot|contains|signs|does|needs|names|begins|ends|may)\b")


@dataclass(frozen=True, slots=True)
class RefusedForm:
    """A form that was not carried out: its fields but for secrets, and what was wrong with which of them."""

    person: str
    """Who sent it: nobody else sees what it held."""
    address: str
    fields: Mapping[str, Sequence[str]]
    field: str
    """The name of the wrong field; empty if it was none in particular."""
    problem: str

    @property
    def size(self) -> int:
        return sum(len(each) for values in self.fields.values() for each in values)

    @classmethod
    def of(
        cls,
        person: str,
        address: str,
        parameters: Mapping[str, str],
        fields: Sequence[tuple[str, str]],
        problem: tuple[str, str],
        is_secret: Callable[[str], bool],
    ) -> "RefusedForm":
        """Keep a form of this person: where it was sent, with the named parts of that path, and what it held."""
        kept: dict[str, list[str]] = {}
        for name, value in fields:
            if name not in _OF_THE_PAGE and not is_secret(name):
                kept.setdefault(name, []).append(value)
        return cls(person, _PART.sub(lambda part: parameters[part[1]], address), kept, *problem)


def in_sentences(error: BadInput, what: str = "this") -> str:
    """The problem and its remedy as sentences; a problem without a subject is about `what`."""
    problem = f"{what} {error.problem}" if _PREDICATE.match(error.problem) else error.problem
    said = [error.remedy] if error.problem == "is empty" else [problem, error.remedy]
    return " ".join(f"{each[:1].upper()}{each[1:].removesuffix('.')}." for each in said if each)


def fill_in(page: str, refused: RefusedForm) -> str:
    """Return the page with the form filled in as it was sent. It is unchanged if it has no such form."""
    found = _Forms(page)
    for form in found.forms:
        if form.is_sent_as(refused):
            edits = sorted([*_edits(form, refused)], key=lambda edit: edit[0])
            return "".join(_applied(page, edits))
    return page


_Edit = tuple[int, int, str]
"""The part of the page from the first place to the second becomes the text."""


def _applied(page: str, edits: Sequence[_Edit]) -> Iterator[str]:
    at = 0
    for start, end, text in edits:
        yield page[at:start] + text
        at = end
    yield page[at:]


@dataclass(slots=True)
class _Tag:
    name: str
    attributes: dict[str, str | None]
    start: int
    end: int
    text: str = ""
    """The text up to its end tag, which begins at `closes`."""
    closes: int = 0

    def edit(self, **changes: str | None) -> _Edit:
        """Return the tag with other attributes: "" is one without a value, None removes one."""
        merged = {**self.attributes, **{name.replace("_", "-"): value for name, value in changes.items()}}
        removed = {name.replace("_", "-") for name, value in changes.items() if value is None}
        pairs = (
            f" {name}" if not value and name != "value" else f' {name}="{escape(value or "")}"'
            for name, value in merged.items()
            if name not in removed
        )
        return self.start, self.end, f"<{self.name}{''.join(pairs)}>"


@dataclass(slots=True)
class _Field:
    tag: _Tag
    label: _Tag | None
    around: list[_Tag]
    """The folded parts that it stands in."""
    options: list[_Tag] = field(default_factory=list["_Tag"])

    @property
    def name(self) -> str:
        return self.tag.attributes.get("name") or ""

    @property
    def type(self) -> str:
        return self.tag.attributes.get("type") or "text"


@dataclass(slots=True)
class _Form:
    tag: _Tag
    around: list[_Tag]
    fields: list[_Field] = field(default_factory=list["_Field"])

    def is_sent_as(self, refused: RefusedForm) -> bool:
        hidden = [each for each in self.fields if each.type == "hidden" and each.name not in _OF_THE_PAGE]
        return (
            self.tag.attributes.get("method") == "post"
            and unquote(self.tag.attributes.get("action") or "") == unquote(refused.address)
            and all((each.tag.attributes.get("value") or "") in refused.fields.get(each.name, ()) for each in hidden)
            and any(each.type not in ("hidden", "submit") for each in self.fields)
        )


class _Forms(HTMLParser):
    """The forms of a page, with their fields and where they stand."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[_Form] = []
        self._lines = [0]
        for line in page.split("\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        self._open: dict[str, list[_Tag]] = {}
        self.feed(page)
        self.close()

    def _place(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("form", "label", "details", "input", "select", "option", "textarea"):
            return
        found = _Tag(tag, dict(attrs), self._place(), self._place() + len(self.get_starttag_text() or ""))
        if tag != "input":
            self._open.setdefault(tag, []).append(found)
        if tag == "form":
            self.forms.append(_Form(found, [*self._open.get("details", ())]))
        elif self._open.get("form"):
            form = self.forms[-1]
            if tag == "option":
                form.fields[-1].options.append(found)
            elif tag in ("input", "select", "textarea"):
                label = self._open.get("label") or [None]
                form.fields.append(_Field(found, label[-1], [*self._open.get("details", ())]))

    def handle_data(self, data: str) -> None:
        for each in self._open.get("option", ())[-1:]:
            each.text += data

    def handle_endtag(self, tag: str) -> None:
        if self._open.get(tag):
            self._open[tag].pop().closes = self._place()


def _edits(form: _Form, refused: RefusedForm) -> Iterator[_Edit]:
    """Yield the changes of the page that fill in its form, and open what the fields are folded in."""
    # Updates of the board leave alone what a person is about to mend.
    yield form.tag.edit(data_own="")
    wrong = next((each for each in form.fields if each.name == refused.field and each.type != "hidden"), None)
    told = f'role="alert"><bdi>{escape(shown(refused.problem, LONGEST_PROBLEM))}</bdi>'
    if wrong is None:
        yield form.tag.end, form.tag.end, f'<p class="note" data-mood="bad" {PROBLEM} {told}</p>'
    else:
        yield from _problem_at(wrong, f'<span class="fault" {PROBLEM} {told}</span>')
    folded = {tag.start: tag for tag in form.around}
    for each in form.fields:
        given = refused.fields.get(each.name, ())
        yield from _filled(each, given, wrong)
        is_written = each.tag.name != "select" and each.type not in (*_NEVER_FILLED, "radio") and any(given)
        if is_written or each is wrong:
            folded |= {tag.start: tag for tag in each.around}
    yield from (each.edit(open="") for each in folded.values())


def _problem_at(wrong: _Field, said: str) -> Iterator[_Edit]:
    """Put the sentence below the field; outside its label, whose name it would become part of."""
    if wrong.label is None:
        after = wrong.tag.closes and wrong.tag.closes + len(f"</{wrong.tag.name}>")
        yield after or wrong.tag.end, after or wrong.tag.end, said
    else:
        end = wrong.label.closes + len("</label>")
        yield wrong.label.start, wrong.label.start, '<div class="field">'
        yield end, end, f"{said}</div>"


def _filled(found: _Field, given: Sequence[str], wrong: _Field | None) -> Iterator[_Edit]:
    tag, changes = found.tag, dict[str, str | None]()
    if wrong is not None and "autofocus" in tag.attributes:
        changes["autofocus"] = None
    if found is wrong:
        described = tag.attributes.get("aria-describedby")
        changes["aria_invalid"] = None if found.type == "radio" else "true"
        changes["aria_describedby"] = f"problem {described}" if described else "problem"
        changes["autofocus"] = ""
    match tag.name, found.type:
        case ("input", "checkbox" | "radio"):
            changes["checked"] = "" if (tag.attributes.get("value") or "on") in given else None
        case ("input", type) if type not in _NEVER_FILLED and given:
            changes["value"] = given[0]
        case ("textarea", _) if given:
            yield tag.end, tag.closes, f"\n{escape(given[0])}"
        case ("select", _) if given:
            for each in found.options:
                value = each.attributes.get("value")
                is_chosen = (each.text.strip() if value is None else value or "") in given
                yield each.edit(selected="" if is_chosen else None)
        case _:
            pass
    if changes:
        yield tag.edit(**changes)
