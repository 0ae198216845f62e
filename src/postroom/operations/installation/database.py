"""The database as a whole: where it is, and its schema."""

from typing import TYPE_CHECKING

from postroom.store.engine.database import Database as Database
from postroom.store.engine.migrate import applied_migrations
from postroom.store.engine.migrate import migrate as migrate
from postroom.store.engine.migrate import pending as pending
from postroom.system.private_files import DATABASE

if TYPE_CHECKING:
    from postroom.settings.reading import Settings


def url_of(settings: "Settings") -> str | None:
    """Return the address of PostgreSQL; None if everything is in an SQLite file."""
    return settings.database_url.get_secret_value() if settings.database_url is not None else None


def is_created(settings: "Settings") -> bool:
    """Return whether there is a database to open: a new installation on SQLite has none yet."""
    return settings.database_url is not None or (settings.data_dir / DATABASE).exists()


async def prepare(database: Database) -> None:
    """Create the schema of a new installation, so that it can be set up before the first start."""
    if not await database.run(applied_migrations()):
        await migrate(database)
