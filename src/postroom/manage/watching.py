"""Changes of mail: pages read it again as soon as some arrived, was decided on or acted on."""

from collections.abc import AsyncIterator

from postroom.manage.channels import changes_on
from postroom.store import acceptance, decisions
from postroom.store.engine.database import Database


def mail_changes(database: Database) -> AsyncIterator[None]:
    """Yield at once, and then whenever mail may have changed since the last value was taken."""
    return changes_on(database, (acceptance.CHANNEL, decisions.CHANNEL))
