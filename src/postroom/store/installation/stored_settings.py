"""The settings that people changed while Postroom runs. `settings/stored.py` says which they may be.

Any name and value can be stored: a database may come from a newer or older program, and what this one does not know is
left alone.
"""

from dataclasses import dataclass
from datetime import datetime

from postroom.store.engine.codecs import from_json, json_text
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.migrate import applied_migrations
from postroom.store.engine.reading import read_rows
from postroom.store.people.audit import Signature, auditing

CHANNEL = "settings"


@dataclass(frozen=True, slots=True)
class StoredSetting:
    """One setting as it was stored, by whom and when."""

    name: str
    value_json: str
    changed_by: str
    changed_at: datetime

    @property
    def value(self) -> object:
        return from_json(self.value_json)


@query
def stored_settings() -> Script[list[StoredSetting]]:
    """All of them by name; none on an older schema, which has no table for them."""
    applied = yield from applied_migrations.script()
    if not any(name == "stored_settings" for name, _ in applied.values()):
        return []
    return read_rows(StoredSetting, (yield sql("select_stored_settings")))


@transaction
def store_setting(name: str, value: object, before: object, signed: Signature, now: datetime) -> Script[None]:
    """Store a value. `before` is the one in effect if none is stored yet."""
    before = {each.name: each.value for each in (yield from stored_settings.script())}.get(name, before)
    yield sql("insert_stored_setting", name, json_text(value), signed.actor, now)
    entry = signed.under("settings.change", "setting", name, before={"value": before}, after={"value": value})
    yield from auditing(entry, now)
    yield Notify(CHANNEL, "changed")


@transaction
def forget_setting(name: str, after: object, signed: Signature, now: datetime) -> Script[bool]:
    """Forget the stored value, so that `after` is in effect again; False if none is stored."""
    found = {each.name: each.value for each in (yield from stored_settings.script())}
    if name not in found:
        return False
    yield sql("delete_stored_setting", name)
    entry = signed.under("settings.reset", "setting", name, before={"value": found[name]}, after={"value": after})
    yield from auditing(entry, now)
    yield Notify(CHANNEL, "changed")
    return True
