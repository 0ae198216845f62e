"""Settings that can be changed while Postroom runs: their list, and how stored values come into effect.

The list is short, and each of it can be applied at once, in every process: nothing has to be opened, bound or planned
again. A stored value is below the command line, the environment and the file, and above the default.
"""

from collections.abc import Mapping
from typing import Any

from postroom.core.errors import BadInput, NotFound
from postroom.core.suggestions import did_you_mean
from postroom.settings.reading import Settings, known_settings, read_setting

CHANGEABLE = (
    "time_zone",
    "safety.confidence",
    "safety.trash_confidence",
    "safety.approval_hours",
    "safety.approval_notices_per_hour",
    "model.max_cents_per_day",
    "model.max_cents_per_message",
    "retention.full_days",
    "retention.metadata_days",
)


def is_given(settings: Settings, key: str) -> bool:
    """Whether the command line, the environment or the file gave this setting: then no stored value counts."""
    section, _, name = key.rpartition(".")
    given: Any = getattr(settings, section) if section else settings
    return name in given.model_fields_set


def check_changeable(key: str) -> None:
    """Raise NotFound for a setting that is not in the list."""
    if key in CHANGEABLE:
        return
    listed = "the changeable ones are: " + ", ".join(CHANGEABLE)
    if key in {each.key for each in known_settings()}:
        raise NotFound(f"{key} cannot be changed while Postroom runs; set it in the file or the environment ({listed})")
    raise NotFound(f"there is no setting {key!r}; {did_you_mean(key, CHANGEABLE, listed, quoted=False)}")


def with_stored(start: Settings, stored: Mapping[str, object]) -> Settings:
    """The settings of the start, with the stored values of those that were not given. Values that this program does not
    know, or would refuse, are left out.
    """
    changed: dict[str, dict[str, object]] = {}
    for key, value in stored.items():
        if key in CHANGEABLE and not is_given(start, key) and why_unusable(key, value) is None:
            section, _, name = key.rpartition(".")
            changed.setdefault(section, {})[name] = read_setting(key, value)
    sections = {name: getattr(start, name).model_copy(update=values) for name, values in changed.items() if name}
    return start.model_copy(update={**sections, **changed.get("", {})})


def why_unusable(key: str, value: object) -> str | None:
    """Why a stored value is left alone; None if it can be used."""
    if key not in CHANGEABLE:
        return "this version has no such setting to change"
    try:
        read_setting(key, value)
    except BadInput as error:
        return f"{error.problem}; {error.remedy}"
    return None
