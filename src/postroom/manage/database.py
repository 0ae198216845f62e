"""The database as a whole: its schema, for those who set it up and look after it."""

from typing import TYPE_CHECKING

from postroom.store.engine.database import Database
from postroom.store.engine.migrate import applied_migrations, migrate, pending
from postroom.system.private_files import DATABASE

if TYPE_CHECKING:
    from postroom.settings.reading import Settings

__all__ = ["Database", "is_created", "migrate", "pending", "prepare", "url_of"]


def url_of(settings: "Settings") -> str | None:
    """Where PostgreSQL is; None when everything is in a file of SQLite."""
    return settings.database_url.get_secret_value() if settings.database_url is not None else None


def is_created(settings: "Settings") -> bool:
    """Whether there is a database to open: a new installation on SQLite has none yet."""
    return settings.database_url is not None or (settings.data_dir / DATABASE).exists()


async def prepare(database: Database) -> None:
    """Gives a new installation its schema, so that it can be set up before the first start."""
    if not await database.run(applied_migrations()):
        await migrate(database)
