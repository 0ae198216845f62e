"""Stored mail that is not indexed yet, as after an upgrade to the first version with search."""

from postroom.store.engine.database import Database, Dialect, Script, Text, transaction

_WORDS_FORGOTTEN: dict[Dialect, str] = {
    "sqlite": "DELETE FROM message_words; DELETE FROM message_documents",
    "postgres": "UPDATE messages SET words = NULL",
}


@transaction
def _unindex(dialect: Dialect) -> Script[None]:
    yield Text(_WORDS_FORGOTTEN[dialect])
    yield Text("INSERT INTO search_backlog (below) VALUES ('ffffffff-ffff-ffff-ffff-ffffffffffff')")


async def unindex(database: Database) -> None:
    await database.run(_unindex(database.dialect))
