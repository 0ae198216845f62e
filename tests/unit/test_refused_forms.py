"""A refused form is filled in again in the page that has it: only that form, and nothing secret."""

import pytest

from postroom.core.errors import BadInput
from postroom.interfaces.dashboard.refused_forms import RefusedForm, fill_in, in_sentences

PAGE = """<p>Before</p><form method="post" action="/things/a/remove"><input name="id"></form>
<details><summary>Make one</summary><form method="post" action="/things">
<input type="hidden" name="form_token" value="t"><input type="hidden" name="kind" value="big">
<label class="field"><span>Name</span><input class="input" name="name" autocomplete="off" required></label>
<label><span>Password</span><input type="password" name="password" aria-describedby="hint" autofocus></label>
<label><input type="checkbox" name="box" value="1" checked></label>
<label><input type="checkbox" name="box" value="2"></label>
<select name="role"><option>viewer</option><option value="adm">admin &amp; all</option></select>
<textarea name="why">old</textarea></form></details>
<form method="post" action="/things"><input type="hidden" name="kind" value="small"><input name="name"></form>"""


def refused(field: str = "", problem: str = "This is wrong.", **changes: list[str]) -> RefusedForm:
    held = {"kind": ["big"], "name": ['"><b>'], "box": ["2"], "role": ["adm"], "why": ["</textarea>&"]}
    return RefusedForm("mara", "/things", held | changes, field, problem)


def test_every_kind_of_field_holds_what_was_sent_and_the_rest_of_the_page_stays() -> None:
    filled = fill_in(PAGE, refused())
    first, _, last = PAGE.partition("<details>")
    assert filled.startswith(first + "<details open>")
    assert filled.endswith(last[last.index("</form></details>") :])
    for expected in (
        'name="name" autocomplete="off" required value="&quot;&gt;&lt;b&gt;">',
        '<input type="checkbox" name="box" value="1"></label>',
        '<input type="checkbox" name="box" value="2" checked></label>',
        '<option>viewer</option><option value="adm" selected>',
        '<textarea name="why">\n&lt;/textarea&gt;&amp;</textarea>',
        '<form method="post" action="/things" data-own><p class="note" data-mood="bad" id="problem" role="alert">',
    ):
        assert expected in filled, expected
    assert "autofocus" in filled, "no field is the wrong one: the page keeps its own focus"


def test_the_wrong_field_has_the_focus_and_its_problem_below_it_as_text() -> None:
    filled = fill_in(PAGE, refused("name", "<i>Too long</i>."))
    assert '<div class="field"><label class="field"><span>Name</span>' in filled
    said = 'id="problem" role="alert"><bdi>&lt;i&gt;Too long&lt;/i&gt;.</bdi></span></div>'
    assert f'</label><span class="fault" {said}' in filled
    assert 'aria-invalid="true" aria-describedby="problem" autofocus' in filled
    assert filled.count("autofocus") == 1


def test_a_password_is_marked_and_stays_empty() -> None:
    filled = fill_in(PAGE, refused("password", password=["secret words"]))
    assert 'name="password" aria-describedby="problem hint" autofocus aria-invalid="true">' in filled
    assert "secret words" not in filled


@pytest.mark.parametrize("other", [{"kind": ["huge"]}, {"kind": []}])
def test_a_page_without_this_very_form_is_unchanged(other: dict[str, list[str]]) -> None:
    assert fill_in(PAGE, refused("", "", **other)) == PAGE


def test_what_is_secret_is_not_kept() -> None:
    fields = [("form_token", "t"), ("back", "/"), ("name", "a"), ("name", "b"), ("password", "p")]
    kept = RefusedForm.of("mara", "/things/{id}", {"id": "7"}, fields, ("name", "x"), "password".__eq__)
    assert (kept.address, kept.fields) == ("/things/7", {"name": ["a", "b"]})


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BadInput("rate", "is empty", "write a number"), "Write a number."),
        (BadInput("rate", "is above 5", "use 1 to 5"), "This is above 5. Use 1 to 5."),
        (BadInput("rate", "'x' is no number", "use digits"), "'x' is no number. Use digits."),
        (BadInput("rate", "is above 5", "A rate, such as 5."), "This is above 5. A rate, such as 5."),
    ],
)
def test_a_problem_is_said_in_sentences_without_the_name_of_the_field(error: BadInput, said: str) -> None:
    assert in_sentences(error) == said
