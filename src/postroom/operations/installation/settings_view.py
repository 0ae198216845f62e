"""The settings in effect, each with where it was set. Secrets are hidden. A few can be changed while Postroom runs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from postroom.core.access import OWN_AGAIN, READ
from postroom.core.errors import BadInput, SettingsError
from postroom.core.views import Done, Internal
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.installation.live_settings import LiveSettings
from postroom.operations.nouns import SETTINGS
from postroom.operations.operation import Argument, command, delete, dialogue, form, get, put
from postroom.settings.reading import known_settings, read_setting, shown, trace_settings, value_of
from postroom.settings.stored import CHANGEABLE, check_changeable, is_given
from postroom.store.installation import stored_settings as store
from postroom.words.settings import setting_in_words

UNKNOWN = "given at the start"
STORED = "database"
Name = Annotated[str, Argument("The setting, such as `safety.approval_hours`.")]
Value = Annotated[str, Argument("The value, written as in the environment.")]


@dataclass(frozen=True, slots=True)
class SettingView:
    """`origin` is the environment variable, the file, `database` for one that was changed here, or `default`."""

    key: str
    value: object
    origin: str
    environment: str
    description: str
    is_default: bool
    is_changeable: Annotated[bool, "Whether `PUT /settings/values/{name}` changes it, at once."]
    changed_by: Internal[str | None]
    changed_at: datetime | None

    @property
    def section(self) -> str:
        return self.key.partition(".")[0] if "." in self.key else "general"


@SETTINGS.operation(READ, get("/settings"), dialogue("settings list"))
async def read_settings(live: LiveSettings, /) -> list[SettingView]:
    """The settings in effect, each with where it was set."""
    return settings_in_effect(live)


@SETTINGS.operation(
    OWN_AGAIN,
    put("/settings/values/{name}"),
    form("/settings/values/{name}"),
    command("settings set {name} {value}"),
    signs=True,
)
async def change_setting(by: Caller, live: LiveSettings, /, name: Name, value: Value) -> Done:
    """Change one of the settings that can be changed while Postroom runs. It takes effect at once, everywhere."""
    check_changeable(name)
    if is_given(live.start, name):
        origin = next(each.origin for each in settings_in_effect(live) if each.key == name)
        raise BadInput("value", f"{name} is set in {origin}, which counts more", "change it there, then restart")
    read = read_setting(name, value)
    await prepare(by.database)
    await by.run(store.store_setting(name, read, value_of(live.current, name), by.signature, by.clock()))
    await live.refresh(by.database)
    return Done(f"Changed. {setting_in_words(name, read)}.")


@SETTINGS.operation(
    OWN_AGAIN,
    delete("/settings/values/{name}"),
    form("/settings/values/{name}/reset"),
    command("settings reset {name}"),
    signs=True,
)
async def reset_setting(by: Caller, live: LiveSettings, /, name: Name) -> Done:
    """Forget the value that was set here: the file, the environment or the default counts again. Safe to repeat."""
    if name not in live.stored:
        check_changeable(name)
        return Done(f"Nothing to reset: {name} was not changed here.")
    known = name in CHANGEABLE
    usual = value_of(live.start, name) if known else None
    await by.run(store.forget_setting(name, usual, by.signature, by.clock()))
    await live.refresh(by.database)
    return Done(f"Reset. {setting_in_words(name, usual)}." if known else f"Reset: {name}.")


def settings_in_effect(live: LiveSettings) -> list[SettingView]:
    """List the settings of the running process.

    Where one is set is read from the environment and the file as they are now. A setting that reads otherwise there
    was given on the command line, or changed since the start.
    """
    given, values = shown(live.start), shown(live.current)
    try:
        now, origins = trace_settings()
        if now.data_dir != live.start.data_dir:
            now, origins = trace_settings({"data_dir": live.start.data_dir})
        read_now = shown(now)
    except SettingsError:
        read_now, origins = dict[str, object](), dict[str, str]()
    found: list[SettingView] = []
    for each in known_settings():
        key = each.key
        is_free = key in CHANGEABLE and not is_given(live.start, key)
        stored = live.stored.get(key) if is_free else None
        is_same = read_now.get(key) == given[key]
        origin = origins.get(key, UNKNOWN) if is_same else UNKNOWN
        found.append(
            SettingView(
                key,
                values[key],
                STORED if stored is not None else origin,
                each.env,
                each.description,
                stored is None and origin == "default",
                is_free,
                None if stored is None else stored.changed_by,
                None if stored is None else stored.changed_at,
            )
        )
    return found
