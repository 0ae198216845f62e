"""The database as a whole: its schema, for those who set it up and look after it."""

from postroom.store.engine.database import Database
from postroom.store.engine.migrate import applied_migrations, migrate, pending

__all__ = ["Database", "migrate", "pending", "prepare"]


async def prepare(database: Database) -> None:
    """Gives a new installation its schema, so that it can be set up before the first start."""
    if not await database.run(applied_migrations()):
        await migrate(database)
