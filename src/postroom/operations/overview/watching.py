"""Changes of mail: pages read it again as soon as some arrived, was decided on or acted on."""

from collections.abc import AsyncIterator

from postroom.operations.overview.channels import changes_on
from postroom.store.actions import decisions
from postroom.store.engine.database import Database
from postroom.store.intake import acceptance


def mail_changes(database: Database) -> AsyncIterator[None]:
    """Yield at once, and then whenever mail may have changed since the last value was taken."""
    return changes_on(database, (acceptance.CHANNEL, decisions.CHANNEL))
