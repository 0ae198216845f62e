"""The words for settings that people change while Postroom runs: their titles, units, and what each changes."""

from collections.abc import Mapping
from typing import NamedTuple


class SettingWords(NamedTuple):
    title: str
    unit: str
    hint: str


PRUNING = "After a change, daily pruning waits until you enable it again on the command line."
SETTING_WORDS: Mapping[str, SettingWords] = {
    "time_zone": SettingWords(
        "Your time zone", "", "When your day begins, for the daily budget and limits. A name such as Europe/Berlin."
    ),
    "safety.confidence": SettingWords(
        "Confidence to act", "0 to 1", "Decisions of a model that is less sure than this need your approval."
    ),
    "safety.trash_confidence": SettingWords(
        "Confidence to move to the trash", "0 to 1", "The same for moving a message to the trash."
    ),
    "safety.approval_hours": SettingWords(
        "Time to approve", "hours", "Later, an unanswered request expires and nothing happens. For new requests."
    ),
    "safety.approval_notices_per_hour": SettingWords(
        "Approval notices", "an hour", "Beyond this, you get one digest on the hour instead of single notices."
    ),
    "model.max_cents_per_day": SettingWords(
        "Model budget", "US cents a day", "When it is spent, the model rests until your next day. Rules go on."
    ),
    "model.max_cents_per_message": SettingWords(
        "Model budget for one message", "US cents", "A message that would cost more is left to your rules."
    ),
    "retention.full_days": SettingWords("Keep whole messages", "days", f"0 keeps them for good. {PRUNING}"),
    "retention.metadata_days": SettingWords("Keep headers", "days", f"0 keeps them for good. {PRUNING}"),
}


def setting_in_words(key: str, value: object) -> str:
    """A setting and its value, as in "Time to approve: 48 hours"."""
    words = SETTING_WORDS[key]
    unit = "" if words.unit == "0 to 1" else words.unit
    return f"{words.title}: {setting_value(value)} {unit}".rstrip()


def setting_value(value: object) -> str:
    """The value as people write it: 100, not 100.0."""
    return f"{value:.10g}" if isinstance(value, float) else str(value)
