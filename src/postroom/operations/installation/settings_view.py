"""The settings in effect, each with where it was set. Secrets are hidden."""

from dataclasses import dataclass

from postroom.core.access import READ
from postroom.core.errors import SettingsError
from postroom.operations.nouns import SETTINGS
from postroom.operations.operation import dialogue, get
from postroom.settings.reading import Settings, known_settings, shown, trace_settings

UNKNOWN = "given at the start"


@dataclass(frozen=True, slots=True)
class SettingView:
    key: str
    value: object
    origin: str
    environment: str
    description: str
    is_default: bool

    @property
    def section(self) -> str:
        return self.key.partition(".")[0] if "." in self.key else "general"


@SETTINGS.operation(READ, get("/settings"), dialogue("settings"))
async def read_settings(settings: Settings, /) -> list[SettingView]:
    """The settings in effect, each with where it was set."""
    return settings_in_effect(settings)


def settings_in_effect(running: Settings) -> list[SettingView]:
    """List the settings of the running process.

    Where one is set is read from the environment and the file as they are now. A setting that reads otherwise there
    was given on the command line, or changed since the start.
    """
    values = shown(running)
    try:
        now, origins = trace_settings({"data_dir": running.data_dir})
        read_now = shown(now)
    except SettingsError:
        read_now, origins = dict[str, object](), dict[str, str]()
    return [
        SettingView(
            each.key,
            values[each.key],
            origins.get(each.key, UNKNOWN) if read_now.get(each.key) == values[each.key] else UNKNOWN,
            each.env,
            each.description,
            origins.get(each.key) == "default" and read_now.get(each.key) == values[each.key],
        )
        for each in known_settings()
    ]
