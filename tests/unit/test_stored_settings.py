"""Settings that can be changed while Postroom runs: their list, what they are below and above, and what is refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import BadInput, NotFound, SettingsError
from postroom.operations.installation import checks
from postroom.settings.reading import Settings, known_settings, load_settings, read_setting, value_of
from postroom.settings.stored import CHANGEABLE, check_changeable, with_stored
from postroom.words.settings import SETTING_WORDS, setting_in_words

VALUES: dict[str, tuple[object, object, object]] = {
    "time_zone": ("Europe/Berlin", "Asia/Tokyo", "America/New_York"),
    "safety.confidence": (0.0, 0.5, 1.0),
    "safety.trash_confidence": (0.1, 0.55, 1.0),
    "safety.approval_hours": (1, 48, 720),
    "safety.approval_notices_per_hour": (0, 3, 100),
    "model.max_cents_per_day": (0.0, 12.5, 10_000.0),
    "model.max_cents_per_message": (0.0, 0.5, 3.0),
    "retention.full_days": (0, 30, 365),
    "retention.metadata_days": (0, 31, 366),
}
SETTINGS = {each.key: each for each in known_settings()}


def chosen(values: tuple[object, object, object]) -> st.SearchStrategy[object | None]:
    return st.none() | st.sampled_from(values)


def start_with(tmp_path: Path, environ: dict[str, object], file: dict[str, object]) -> Settings:
    """The settings of a start with these values in the environment and in the file."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in sorted(file.items(), key=lambda each: "." in each[0])]
    (tmp_path / "postroom.toml").write_text("\n".join(lines))
    variables = {SETTINGS[key].env: str(value) for key, value in environ.items()}
    return load_settings(environ={"HOME": str(tmp_path), **variables}, cwd=tmp_path)


def test_the_list_is_short_has_words_and_no_secret() -> None:
    assert set(CHANGEABLE) == set(SETTING_WORDS) == set(VALUES)
    assert 6 <= len(CHANGEABLE) <= 10
    assert not any(SETTINGS[key].secret for key in CHANGEABLE)
    assert setting_in_words("safety.approval_hours", 48) == "Time to approve: 48 hours"
    assert setting_in_words("model.max_cents_per_day", 100.0) == "Model budget: 100 US cents a day"


@given(data=st.data())
def test_the_environment_beats_the_file_beats_what_is_stored_beats_the_default(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    given = {
        place: {key: value for key, values in VALUES.items() if (value := data.draw(chosen(values))) is not None}
        for place in ("environ", "file", "stored")
    }
    start = start_with(tmp_path_factory.mktemp("start"), given["environ"], given["file"])
    found = with_stored(start, given["stored"])
    for key in CHANGEABLE:
        wanted = {key: SETTINGS[key].default} | given["stored"] | given["file"] | given["environ"]
        assert value_of(found, key) == wanted[key], key
    same = start_with(tmp_path_factory.mktemp("same"), {}, given["stored"] | given["file"] | given["environ"])
    assert found.model_copy(update={"data_dir": same.data_dir}) == same, "as if the file had them all"
    with pytest.raises(ValueError, match="frozen"):
        found.time_zone = "UTC"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("time_zone", "Mars/Olympus"),
        ("time_zone", "a; b (from x) is refused; use z"),
        ("safety.confidence", "1.5"),
        ("safety.confidence", "nan"),
        ("safety.approval_hours", "0"),
        ("safety.approval_hours", "a while"),
        ("safety.approval_hours", ""),
        ("model.max_cents_per_day", "-1"),
        ("model.max_cents_per_day", "inf"),
        ("retention.full_days", "0.5"),
    ],
)
def test_a_value_is_refused_in_the_words_of_the_file(tmp_path: Path, key: str, value: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_setting(key, value)
    with pytest.raises(SettingsError) as in_file:
        start_with(tmp_path, {}, {key: value})
    given, file = refused.value.problem.removesuffix(" is refused"), tmp_path / "postroom.toml"
    assert str(in_file.value) == f"{key}: {given} (from {file}) is refused; {refused.value.remedy}"


def test_what_another_version_stored_is_left_alone_and_doctor_says_so() -> None:
    start = Settings.model_validate({"safety": {"approval_hours": 12}})
    stored: dict[str, object] = {
        "safety.hours_of_tomorrow": 3,
        "web.port": 1,
        "safety.confidence": 7,
        "safety.approval_hours": 48,
        "time_zone": "Asia/Tokyo",
    }
    found = with_stored(start, stored)
    assert found == start.model_copy(update={"time_zone": "Asia/Tokyo"})
    said = [(each.verdict, each.found) for each in checks.stored_settings(start, stored)]
    assert said == [
        ("ok", "changed here: time_zone; overruled by the file or the environment: safety.approval_hours"),
        ("warn", "safety.hours_of_tomorrow is ignored: this version has no such setting to change"),
        ("warn", "web.port is ignored: this version has no such setting to change"),
        ("warn", "safety.confidence is ignored: 7 is refused; use a number from 0 to 1"),
    ]
    assert checks.stored_settings(start, {}) == []


def test_only_settings_of_the_list_can_be_changed() -> None:
    with pytest.raises(NotFound, match=r"web\.port cannot be changed while Postroom runs"):
        check_changeable("web.port")
    with pytest.raises(NotFound, match=r"did you mean safety\.approval_hours\?"):
        check_changeable("safety.aproval_hours")
